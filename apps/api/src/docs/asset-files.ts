// The files of the pages under `/docs`. The description of the API names them too, and must not load what serves them.

const JAVASCRIPT = 'text/javascript; charset=utf-8'
const CSS = 'text/css; charset=utf-8'

/** The files by their names in the path, a closed list. */
export const ASSETS = {
  'swagger-ui-bundle.js': {
    find: () => import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js'),
    mediaType: JAVASCRIPT,
  },
  'swagger-ui.css': { find: () => import.meta.resolve('swagger-ui-dist/swagger-ui.css'), mediaType: CSS },
  'start-viewer.js': { find: () => import.meta.resolve('./page/start-viewer.js'), mediaType: JAVASCRIPT },
  'page.css': { find: () => import.meta.resolve('./page/page.css'), mediaType: CSS },
  'icon.svg': { find: () => import.meta.resolve('./page/icon.svg'), mediaType: 'image/svg+xml' },
} as const

export type AssetName = keyof typeof ASSETS
