/**
 * The link to the management server's own control plane, through its HTTPS port. The front-proxy client certificate
 * allows it to name the user in X-Remote headers.
 */
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'

import type { ClusterLink } from './link.ts'

export interface LocalLinkOptions {
  readonly clock: Clock
  /** `https://127.0.0.1:6443`. */
  readonly url: string
  /** PEM. */
  readonly ca: string
  readonly certificate: string
  readonly key: string
}

export function openLocalLink({ clock, url, ...tls }: LocalLinkOptions): ClusterLink & { readonly client: HttpClient } {
  const client = createHttpClient({ clock, tls })
  return {
    client,
    url,
    identityHeaders: ({ name, groups }) => ({ 'x-remote-user': name, 'x-remote-group': groups }),
  }
}
