/**
 * The paths of the keeper, which supervises services on machines without systemd. All derive from the folder of
 * `hyperkube build`, so that two clusters on one machine do not conflict. Pure.
 */
import { join } from 'node:path'

import { sha256 } from '../service-digest.ts'

export interface KeeperPaths {
  /** The definitions of services. */
  readonly specs: string
  readonly spec: (name: string) => string
  readonly logs: string
  readonly log: (name: string) => string
  /** The folder for files that do not survive a reboot. */
  readonly state: string
  readonly socket: string
  /** The pid file of a service. */
  readonly mark: (name: string) => string
}

export function keeperPaths(home: string): KeeperPaths {
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
