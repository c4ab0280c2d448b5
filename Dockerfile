# One image for every process; the command selects it: node apps/{api,worker,dashboard,cli}/src/main.ts
#
# Node runs the TypeScript files, but strips no types under node_modules. So the workspace keeps its layout: its packages are
# links to folders outside node_modules (`pnpm deploy` would copy them into it).

FROM node:24-slim AS install
WORKDIR /sluice
RUN npm install --global pnpm@12
# The packages of the lock file have a layer of their own, so that a change of the code fetches nothing again.
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
RUN pnpm fetch --prod
COPY . .
# Skips the optional dependency `node`: the image has its own Node.
RUN pnpm install --prod --no-optional --offline --frozen-lockfile

FROM node:24-slim
WORKDIR /sluice
# Root owns the files and `node` runs the process, so the process can't change its own code.
COPY --from=install /sluice ./
USER node
# The loopback address of a container is unreachable from outside. The published ports control the access.
ENV NODE_ENV=production HOST=0.0.0.0 ADMIN_HOST=0.0.0.0
# Checks that the process lives. Load balancers check /readyz: a restart does not bring MongoDB back.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.ADMIN_PORT || 9464) + '/livez').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=32", "--min-semi-space-size=32", "apps/api/src/main.ts"]
