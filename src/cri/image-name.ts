/** Normalizes image names to the runtime's form: with host, and with tag or digest. Pure. */

const DEFAULT_HOST = 'docker.io'

/** `nginx` becomes `docker.io/library/nginx:latest`. Digests (`sha256:…`) are unchanged. */
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

/** The name without tag and digest. */
export function repositoryOf(name: string): string {
  return name.replace(/@.*$/, '').replace(/:[^:/]*$/, '')
}

const COMPONENT = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/

/** Why the image name is invalid; undefined when it is valid. */
export function nameFault(image: string): string | undefined {
  const slash = image.indexOf('/')
  const first = slash < 0 ? '' : image.slice(0, slash)
  const hasHost = /[.:]/.test(first) || first === 'localhost'
  const rest = hasHost ? image.slice(slash + 1) : image
  const whole = !hasHost && slash < 0 ? `library/${rest}` : rest
  const [path = ''] = whole.split(/[:@]/, 1)
  if (path !== path.toLowerCase()) return `invalid reference format: repository name (${path}) must be lowercase`
  const tail = whole.slice(path.length)
  const isFine = path.split('/').every((part) => COMPONENT.test(part)) && TAIL.test(tail)
  return isFine ? undefined : 'invalid reference format'
}

const TAIL = /^(?::\w[\w.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,})?$/
