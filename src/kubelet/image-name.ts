/** Names of images as runtimes keep them: with host, and with tag or digest. Pure. */

const DEFAULT_HOST = 'docker.io'

/** `nginx` is `docker.io/library/nginx:latest`. Digests, `sha256:…`, stay as they are. */
export function normalImageName(name: string): string {
  if (/^sha256:[0-9a-f]{64}$/.test(name)) return name
  const slash = name.indexOf('/')
  const first = slash < 0 ? '' : name.slice(0, slash)
  const hasHost = /[.:]/.test(first) || first === 'localhost'
  const host = hasHost ? (first === 'index.docker.io' ? DEFAULT_HOST : first) : DEFAULT_HOST
  const rest = hasHost ? name.slice(slash + 1) : name
  const path = host === DEFAULT_HOST && !rest.includes('/') ? `library/${rest}` : rest
  return /[:@]/.test(path) ? `${host}/${path}` : `${host}/${path}:latest`
}

/** Without tag and digest. */
export function repositoryOf(name: string): string {
  return name.replace(/@.*$/, '').replace(/:[^:/]*$/, '')
}
