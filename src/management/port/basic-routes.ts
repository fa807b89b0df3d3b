/** The HTTP routes that need no credentials: the CA of the server's certificate, and the version. */
import type { Reply, Route } from './route.ts'

export interface BasicRoutesOptions {
  /** PEM; undefined: the certificate of the server is from a public authority. */
  readonly ca: () => string | undefined
  readonly version: string
}

export function basicRoutes({ ca, version }: BasicRoutesOptions): readonly Route[] {
  const route = (path: string, serve: () => Reply): Route => ({ method: 'GET', path, access: 'anyone', serve })
  return [
    route('/ping', () => ({ status: 200, body: 'pong' })),
    route('/v3/settings/cacerts', () => ({ status: 200, body: { name: 'cacerts', value: ca() ?? '' } })),
    route('/v3/settings/server-version', () => ({ status: 200, body: { name: 'server-version', value: version } })),
  ]
}
