// The pages and the acts of the dashboard, by their paths.
import { askDiscardGroup, groupPage, groupsPage } from './failures.ts'
import { findBox, findPage } from './find.ts'
import { importPage, importsPage } from './imports.ts'
import { askDiscardJob, jobPage } from './job.ts'
import { operationsPage } from './operations.ts'
import { overviewPage } from './overview.ts'
import type { Show } from './page.ts'
import { recentPage } from './recent.ts'
import { threadPage } from './thread.ts'

/** What GET shows. Discards are asked for by GET too, and only operators may ask. */
export const pages: Record<'all' | 'operators', Record<string, Show>> = {
  all: {
    '/': findBox,
    '/find': findPage,
    '/thread': threadPage,
    '/recent': recentPage,
    '/overview': overviewPage,
    '/failures': groupsPage,
    '/failures/:group': groupPage,
    '/jobs/:id': jobPage,
    '/imports': importsPage,
    '/imports/:id': importPage,
    '/operations': operationsPage,
  },
  operators: {
    '/failures/:group/discard': askDiscardGroup,
    '/jobs/:id/discard': askDiscardJob,
  },
}
