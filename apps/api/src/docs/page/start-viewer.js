// Starts Swagger UI on the page `/docs`. It fetches nothing from other origins, and does not store
// the key.
window.addEventListener('DOMContentLoaded', () => {
  window.SwaggerUIBundle({
    url: 'openapi.json',
    dom_id: '#viewer',
    deepLinking: true,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    // By default, Swagger UI asks a service on the internet whether the document is valid.
    validatorUrl: null,
  })
})
