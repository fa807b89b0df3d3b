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
  return devices.split('\n').flatMap((line): InterfaceUse[] => {
    const [, name = '', figures = ''] = /^\s*([^\s:]+):(.*)$/.exec(line) ?? []
    if (name === '' || name === 'lo' || name.startsWith('veth')) return []
    const [rxBytes = 0, , rxErrors = 0, , , , , , txBytes = 0, , txErrors = 0] = figures.trim().split(/\s+/).map(Number)
    return [{ name, rxBytes, rxErrors, txBytes, txErrors }]
  })
}
