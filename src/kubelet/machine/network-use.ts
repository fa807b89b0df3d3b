/** Reads the traffic counters of network interfaces from the kernel. */
import { readFile } from 'node:fs/promises'

import { defaultInterface } from './machine.ts'
import type { InterfaceUse, NetworkUse } from './node-stats.ts'

/** Counters of this machine; undefined without /proc. */
export async function readNetwork(): Promise<NetworkUse | undefined> {
  const read = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '')
  const [devices, routes] = await Promise.all([read('/proc/net/dev'), read('/proc/net/route')])
  const interfaces = interfacesIn(devices)
  if (interfaces.length === 0) return undefined
  const outward = defaultInterface(routes)
  return { outward: interfaces.find(({ name }) => name === outward), interfaces }
}

/** Parses `/proc/net/dev`, without the loopback and veth interfaces. Pure. */
export function interfacesIn(devices: string): InterfaceUse[] {
  return deviceCountsIn(devices).map(({ name, rxBytes, rxErrors, txBytes, txErrors }) => ({
    name,
    rxBytes,
    rxErrors,
    txBytes,
    txErrors,
  }))
}

/** All counters of an interface that metrics report. */
export interface DeviceCounts extends InterfaceUse {
  readonly rxPackets: number
  readonly rxDropped: number
  readonly txPackets: number
  readonly txDropped: number
}

/** Parses `/proc/net/dev` with all counters. Pure. */
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

/** The transmit counters follow eight receive counters. */
const TRANSMITTED = 8
