/** Parses net-conf.json on Windows: the same file as on Linux, with the defaults and limits of Windows. Pure. */
import { caseless, type NetConf, NetConfError, parseNetConf } from '../net-conf.ts'

export interface WindowsNetConf extends NetConf {
  readonly network: string
  readonly backend: Extract<NetConf['backend'], { readonly type: 'vxlan' }>
  /** The name of the HCN network. */
  readonly name: string
}

const LEAST_VNI = 4096
const ONLY_PORT = 4789
const MAC_PREFIX = /^[0-9A-Fa-f]{2}-[0-9A-Fa-f]{2}$/

/** Throws NetConfError. */
export function parseWindowsNetConf(text: string): WindowsNetConf {
  const conf = parseNetConf(text, { vni: LEAST_VNI, port: ONLY_PORT })
  const { network, backend } = conf
  if (network === undefined) throw new NetConfError('Windows nodes support IPv4 networks only')
  if (backend.type !== 'vxlan')
    throw new NetConfError(`the backend ${backend.type} is not supported on Windows: use vxlan, or upstream's flanneld`)
  const faults = [
    ...(backend.vni < LEAST_VNI
      ? [`VNI must be greater than or equal to ${LEAST_VNI} on Windows: ${backend.vni}`]
      : []),
    ...(backend.port === ONLY_PORT ? [] : [`Port must be ${ONLY_PORT} on Windows: ${backend.port}`]),
    ...(backend.directRouting ? ['DirectRouting is not supported on Windows'] : []),
    ...(backend.gbp ? ['GBP is not supported on Windows'] : []),
  ]
  const { Name: name = `flannel.${backend.vni}`, MacPrefix: prefix = '0E-2A' } = backendOf(text)
  if (typeof prefix !== 'string' || !MAC_PREFIX.test(prefix)) faults.push('MacPrefix must be two bytes, 0E-2A')
  if (typeof name !== 'string' || name === '') faults.push('Name must be a text')
  if (faults.length > 0) throw new NetConfError(faults.join('; '))
  return { ...conf, network, backend, name: String(name) }
}

function backendOf(text: string): Readonly<Record<string, unknown>> {
  const { Backend = {} } = caseless(JSON.parse(text) as Readonly<Record<string, unknown>>, ['Backend'])
  return caseless(Backend as Readonly<Record<string, unknown>>, ['Name', 'MacPrefix'])
}
