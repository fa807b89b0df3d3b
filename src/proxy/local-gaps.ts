/** Counts Service ports with a Local policy and no local endpoints. Pure. */
import type { IpFamily } from '#model/services.ts'

import type { RoutedService } from './router.ts'
import type { Route } from './routing.ts'

export interface Gaps {
  readonly internal: number
  readonly external: number
}

const NONE: Gaps = { internal: 0, external: 0 }

export class LocalGaps {
  readonly #known = new Map<IpFamily, Map<string, Gaps>>()

  note({ service, routes }: RoutedService, family: IpFamily): void {
    const known = this.#known.get(family) ?? new Map<string, Gaps>()
    const gaps = gapsOf(routes.get(family) ?? [])
    if (gaps.internal + gaps.external === 0) known.delete(service)
    else known.set(service, gaps)
    this.#known.set(family, known)
  }

  count(family: IpFamily): Gaps {
    return sum(this.#known.get(family)?.values() ?? [])
  }
}

function gapsOf(routes: readonly Route[]): Gaps {
  const missing = routes.filter(({ hasEndpoints, local }) => hasEndpoints && local.length === 0)
  return sum(
    missing.map(({ port }) => ({ internal: Number(port.isInternalLocal), external: Number(port.isExternalLocal) })),
  )
}

function sum(all: Iterable<Gaps>): Gaps {
  let { internal, external } = NONE
  for (const one of all) [internal, external] = [internal + one.internal, external + one.external]
  return { internal, external }
}
