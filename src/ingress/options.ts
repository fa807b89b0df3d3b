/**
 * What annotations of an Ingress and the ConfigMap change, by ingress-nginx's names. One that would keep somebody out and is not
 * known here closes its Ingress: to pass it over would let everybody in. Pure.
 */

export interface IngressOptions {
  /** To which path a request goes; `$1` is the first group of the path, which is a regular expression then. */
  readonly rewriteTarget: string | undefined
  readonly usesRegex: boolean
  /** Whether plain HTTP is sent to HTTPS: where there is a certificate, or anyway. */
  readonly redirects: 'with certificate' | 'always' | 'never'
  readonly backendProtocol: 'http' | 'https'
  /** Until the backend begins to answer. */
  readonly readTimeoutMs: number
  readonly connectTimeoutMs: number
  /** What annotations ask for and nobody does here. */
  readonly unknown: readonly string[]
  /** The one for which the Ingress is closed. */
  readonly closedBy: string | undefined
}

const PREFIX = 'nginx.ingress.kubernetes.io/'
const KNOWN = [
  'rewrite-target',
  'use-regex',
  'ssl-redirect',
  'force-ssl-redirect',
  'backend-protocol',
  'proxy-read-timeout',
  'proxy-connect-timeout',
]
/** Has no effect here that anybody would miss: bodies and answers pass piece by piece, whatever their size. */
const NEEDLESS = [
  'proxy-body-size',
  'proxy-buffering',
  'proxy-request-buffering',
  'proxy-buffer-size',
  'proxy-buffers-number',
  'proxy-send-timeout',
  'proxy-http-version',
  'websocket-services',
]
const KEEPS_OUT =
  /^(?:whitelist-source-range|allowlist-source-range|denylist-source-range|auth-|satisfy$|enable-(?:modsecurity|owasp))/

/** As nginx has them in ingress-nginx. */
const READ_TIMEOUT_S = 60
const CONNECT_TIMEOUT_S = 5

export function readOptions(
  annotations: Readonly<Record<string, string>>,
  settings: Readonly<Record<string, string>>,
): IngressOptions {
  const own = new Map(
    Object.entries(annotations)
      .filter(([key]) => key.startsWith(PREFIX))
      .map(([key, value]) => [key.slice(PREFIX.length), value]),
  )
  const value = (name: string): string | undefined => own.get(name) ?? settings[name]
  const protocol = (value('backend-protocol') ?? 'HTTP').toUpperCase()
  const unknown = [...own.keys()].filter((name) => !KNOWN.includes(name) && !NEEDLESS.includes(name))
  return {
    rewriteTarget: own.get('rewrite-target'),
    usesRegex: own.get('use-regex') === 'true' || own.has('rewrite-target'),
    redirects: redirectsOf(value),
    backendProtocol: protocol === 'HTTPS' ? 'https' : 'http',
    readTimeoutMs: secondsOf(value('proxy-read-timeout'), READ_TIMEOUT_S) * 1000,
    connectTimeoutMs: secondsOf(value('proxy-connect-timeout'), CONNECT_TIMEOUT_S) * 1000,
    unknown,
    closedBy: unknown.find((name) => KEEPS_OUT.test(name)),
  }
}

function redirectsOf(value: (name: string) => string | undefined): IngressOptions['redirects'] {
  if (value('force-ssl-redirect') === 'true') return 'always'
  return value('ssl-redirect') === 'false' ? 'never' : 'with certificate'
}

function secondsOf(text: string | undefined, otherwise: number): number {
  const seconds = Number(text)
  return text !== undefined && Number.isInteger(seconds) && seconds > 0 ? seconds : otherwise
}
