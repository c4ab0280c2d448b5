# One image for every process; the command says which: node apps/{api,worker,dashboard,cli}/src/main.ts
#
# Node runs the TypeScript as it is, but strips no types under node_modules. So the workspace keeps its layout here, where packages are
# links to folders outside of node_modules (`pnpm deploy` would copy them into it).

FROM node:24-slim AS install
WORKDIR /sluice
RUN npm install --global pnpm@12
# What the lock file names is fetched in a layer of its own: a change of the code fetches nothing anew.
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
RUN pnpm fetch --prod
COPY . .
# Without development dependencies, and so without npm's `node` package: the image has its own Node.
RUN pnpm install --prod --offline --frozen-lockfile

FROM node:24-slim
WORKDIR /sluice
# The files belong to root and the process to `node`: it can't change its own code.
COPY --from=install /sluice ./
USER node
# Inside a container the loopback address reaches nobody; who may reach these ports is said where they are published.
ENV NODE_ENV=production HOST=0.0.0.0 ADMIN_HOST=0.0.0.0
# Whether the process lives. Whether it can work (/readyz) is for load balancers: a restart does not bring MongoDB back.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.ADMIN_PORT || 9464) + '/livez').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "apps/api/src/main.ts"]
