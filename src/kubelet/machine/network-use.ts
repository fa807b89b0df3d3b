/** What goes over the interfaces of a machine, as the kernel counts it. */
import { readFile } from 'node:fs/promises'

import type { InterfaceUse, NetworkUse } from '../node-stats.ts'
import { defaultInterface } from './machine.ts'

/** Of this machine; undefined where there is no /proc. */
export async function readNetwork(): Promise<NetworkUse | undefined> {
  const read = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '')
  const [devices, routes] = await Promise.all([read('/proc/net/dev'), read('/proc/net/route')])
  const interfaces = interfacesIn(devices)
  if (interfaces.length === 0) return undefined
  const outward = defaultInterface(routes)
  return { outward: interfaces.find(({ name }) => name === outward), interfaces }
}

/** In `/proc/net/dev`, without the loopback and the ends of what leads into pods. Pure. */
export function interfacesIn(devices: string): InterfaceUse[] {
  return deviceCountsIn(devices).map(({ name, rxBytes, rxErrors, txBytes, txErrors }) => ({
    name,
    rxBytes,
    rxErrors,
    txBytes,
    txErrors,
  }))
}

/** All that the kernel counts of an interface which users ask for. */
export interface DeviceCounts extends InterfaceUse {
  readonly rxPackets: number
  readonly rxDropped: number
  readonly txPackets: number
  readonly txDropped: number
}

/** Likewise. Pure. */
export function deviceCountsIn(devices: string): DeviceCounts[] {
  return devices.split('\n').flatMap((line): DeviceCounts[] => {
    const [, name = '', figures = ''] = /^\s*([^\s:]+):(.*)$/.exec(line) ?? []
    if (name === '' || name === 'lo' || name.startsWith('veth')) return []
    const counts = figures.trim().split(/\s+/).map(Number)
    const [rxBytes = 0, rxPackets = 0, rxErrors = 0, rxDropped = 0] = counts
    const [txBytes = 0, txPackets = 0, txErrors = 0, txDropped = 0] = counts.slice(TRANSMITTED)
    return [{ name, rxBytes, rxPackets, rxErrors, rxDropped, txBytes, txPackets, txErrors, txDropped }]
  })
}

/** After the eight counts of what was received. */
const TRANSMITTED = 8
