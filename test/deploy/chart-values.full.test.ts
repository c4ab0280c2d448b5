import assert from 'node:assert/strict'
import { test } from 'vitest'
import { CHART, hasHelm, helm, KUBERNETES, render } from './manifests.ts'

test.skipIf(!hasHelm)('the chart refuses values that cannot work, and says what to do', () => {
  helm(['lint', CHART, '--kube-version', KUBERNETES])
  // As a values file has them if all of their lines are comments.
  render(['--set', 'settings=null,api.settings=null,dashboard.settings=null'])
  for (const [values, message] of [
    ['workers.replicas=3', /workers/],
    ['worker.replicas=0', /minimum/],
    ['networkPolicy.httpFrom[0].x=1', /httpFrom/],
    ['settings.MAX_QUTES=five', /MAX_QUTES/],
    ['worker.settings.QUEUE=other', /worker\.settings\.QUEUE: all processes .* in `settings`/],
    ['api.settings.LIST_SOURCES=on', /api\.settings\.LIST_SOURCES: all processes/],
    ['dashboard.ingress.host=board.example', /such as https:\/\/board\.example, not ""/],
    [
      'dashboard.ingress.host=board.example,settings.DASHBOARD_URL=https://a.example',
      /not "https:\/\/a\.example"/,
    ],
    [
      'api.spillVolume.emptyDir=null,api.spillVolume.persistentVolumeClaim.claimName=spill',
      /volumeClaimTemplate/,
    ],
    ['keda.enabled=true,worker.replicas=8', /worker\.maxReplicas \(6\) must be at least/],
    ['settings.QUEUE=a,extraEnv[0].name=QUEUE', /the chart sets QUEUE\. Use `settings`/],
    ['extraEnv[0].name=REDIS_URL', /the chart sets REDIS_URL/],
    ['fullnameOverride=1sluice', /"1sluice"/],
    ['fullnameOverride=my.sluice', /"my\.sluice"/],
  ] as const) {
    assert.throws(() => render(['--set', values]), message)
  }
  render(['--set-string', 'settings.WAIT_SECONDS=0.1,settings.RETAIN_DAYS=0,settings.MAX_TITLE='])
  for (const [setting, message] of [
    ['settings.WAIT_SECONDS=0', /WAIT_SECONDS must be a number from 0\.1 to 3600, not "0"/],
    ['worker.settings.CONCURRENCY=1001', /CONCURRENCY must be .* from 1 to 1000, not "1001"/],
    ['settings.MAX_QUEUE_BYTES=1', /MAX_QUEUE_BYTES must be .* at least 33554432, not "1"/],
  ] as const) {
    assert.throws(() => render(['--set-string', setting]), message)
  }
})
