/**
 * Reads the options of Ingresses from annotations and the ConfigMap, with ingress-nginx's names. An unsupported
 * annotation that would restrict access blocks its Ingress, because ignoring it would grant access. Pure.
 */

export interface IngressOptions {
  /** The rewritten path; `$1` is the first group of the regex path. */
  readonly rewriteTarget: string | undefined
  readonly usesRegex: boolean
  /** Whether HTTP is redirected to HTTPS: with a certificate, or always. */
  readonly redirects: 'with certificate' | 'always' | 'never'
  readonly backendProtocol: 'http' | 'https'
  /** Until the backend starts its response. */
  readonly readTimeoutMs: number
  readonly connectTimeoutMs: number
  /** Unsupported annotations. */
  readonly unknown: readonly string[]
  /** The unsupported annotation that blocks the Ingress. */
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
/** Annotations without effect here: bodies and responses are streamed, whatever their size. */
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

/** ingress-nginx's defaults. */
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
