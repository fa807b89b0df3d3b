/** Where a keeper has its things. All follows from the folder of the builder, so that two on one machine never meet. Pure. */
import { join } from 'node:path'

import { sha256 } from '../service-digest.ts'

export interface KeeperPlaces {
  /** What services there are to be. */
  readonly specs: string
  readonly spec: (name: string) => string
  readonly logs: string
  readonly log: (name: string) => string
  /** All that does not outlive a reboot. */
  readonly state: string
  readonly socket: string
  /** Which process a service is. */
  readonly mark: (name: string) => string
}

export function keeperPlaces(home: string): KeeperPlaces {
  const specs = join(home, 'services')
  const logs = join(home, 'logs')
  const state = join('/run/hyperkube', `keeper-${sha256(home).slice(0, 10)}`)
  return {
    specs,
    spec: (name) => join(specs, `${name}.json`),
    logs,
    log: (name) => join(logs, `${name}.log`),
    state,
    socket: join(state, 'keeper.sock'),
    mark: (name) => join(state, `${name}.json`),
  }
}
