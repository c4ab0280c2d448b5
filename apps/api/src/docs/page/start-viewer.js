// Starts Swagger UI on the page `/docs`. Nothing is fetched from another origin, and the key is kept nowhere.
window.addEventListener('DOMContentLoaded', () => {
  window.SwaggerUIBundle({
    url: 'openapi.json',
    dom_id: '#viewer',
    deepLinking: true,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    // The default asks a service on the internet whether the document is valid.
    validatorUrl: null,
  })
})
