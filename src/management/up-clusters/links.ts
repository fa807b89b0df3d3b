/** The links to running clusters of this machine. */
import type { Clock } from '#lib/clock.ts'

import { type ClusterLink, type ClusterLinks, SERVER_USER } from '../links/link.ts'
import { openLocalLink } from '../links/local-link.ts'
import type { UpEndpoint } from './programs.ts'

interface OpenLink {
  readonly endpoint: UpEndpoint
  readonly link: ReturnType<typeof openLocalLink>
}

export class UpLinks implements ClusterLinks {
  readonly #clock: Clock
  readonly #open = new Map<string, OpenLink>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get(cluster: string): ClusterLink | undefined {
    return this.#open.get(cluster)?.link
  }

  /** Opens, replaces or closes the link of a cluster. The same endpoint keeps it. */
  set(cluster: string, endpoint: UpEndpoint | undefined): void {
    const before = this.#open.get(cluster)
    if (endpoint !== undefined && before !== undefined && isSame(before.endpoint, endpoint)) return
    before?.link.client.close()
    if (endpoint === undefined) this.#open.delete(cluster)
    else this.#open.set(cluster, { endpoint, link: linkTo(endpoint, this.#clock) })
  }

  close(): void {
    for (const { link } of this.#open.values()) link.client.close()
    this.#open.clear()
  }
}

function isSame(one: UpEndpoint, other: UpEndpoint): boolean {
  return one.url === other.url && one.certificate === other.certificate && one.ca === other.ca
}

/** The server itself needs every right before the roles of its users exist in the cluster. */
function linkTo(endpoint: UpEndpoint, clock: Clock): OpenLink['link'] {
  const link = openLocalLink({ ...endpoint, clock })
  return {
    ...link,
    identityHeaders: (user) =>
      link.identityHeaders(user === SERVER_USER ? { ...user, groups: [...user.groups, 'system:masters'] } : user),
  }
}
