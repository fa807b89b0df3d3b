/** The HTTP routes that need no credentials: health checks, and the CA of the server's certificate. */
import { serviceUnavailableError } from '#meta/status-errors.ts'

import type { Reply, Route } from './route.ts'

export interface BasicRoutesOptions {
  /** PEM; undefined: the certificate of the server is from a public authority. */
  readonly ca: () => string | undefined
  /** False while the server starts or stops. */
  readonly isReady: () => boolean
  readonly version: string
}

export function basicRoutes({ ca, isReady, version }: BasicRoutesOptions): readonly Route[] {
  const route = (path: string, serve: () => Reply): Route => ({ method: 'GET', path, access: 'anyone', serve })
  const ready = (): Reply => {
    if (!isReady()) throw serviceUnavailableError('the server is starting or stopping')
    return { status: 200, body: 'ok' }
  }
  return [
    route('/livez', () => ({ status: 200, body: 'ok' })),
    route('/healthz', ready),
    route('/readyz', ready),
    route('/ping', () => ({ status: 200, body: 'pong' })),
    route('/v3/settings/cacerts', () => ({ status: 200, body: { name: 'cacerts', value: ca() ?? '' } })),
    route('/v3/settings/server-version', () => ({ status: 200, body: { name: 'server-version', value: version } })),
  ]
}
