/** kubectl create service: creates services of the four types. */
import { flag } from '#lib/flags/flags.ts'
import { parseUnsigned } from '#lib/flags/go-literals.ts'
import { int, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { dns1123Subdomain, portName, portNumber } from '#meta/validation/names.ts'

import { type Command, type CommandRow, defineGroup, row } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import type { AnyObject } from '../session/rest.ts'
import { beginning, defineGenerator } from './generator.ts'

interface ServiceOptions {
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName'
  readonly tcp: readonly string[]
  readonly clusterIP?: string
  readonly nodePort?: number
  readonly externalName?: string
}

/** Throws KubectlError. */
function serviceOf(
  name: string,
  { type, tcp, clusterIP = '', nodePort = 0, externalName = '' }: ServiceOptions,
): AnyObject {
  if (clusterIP !== 'None' && tcp.length === 0 && type !== 'ExternalName') {
    throw new KubectlError('at least one tcp port specifier must be provided')
  }
  if (type === 'ExternalName' && dns1123Subdomain(externalName).length > 0) {
    throw new KubectlError(`invalid service external name ${externalName}`)
  }
  const ports = tcp.map((text) => ({
    name: text.replaceAll(':', '-'),
    protocol: 'TCP',
    ...portsOf(text),
    ...(nodePort !== 0 && { nodePort }),
  }))
  return {
    ...beginning('v1', 'Service'),
    metadata: { name, labels: { app: name } },
    spec: {
      ...(ports.length > 0 && { ports }),
      selector: { app: name },
      ...(clusterIP !== '' && { clusterIP }),
      type,
      ...(externalName !== '' && { externalName }),
    },
    status: { loadBalancer: {} },
  }
}

/** `80`, `80:8080`, `80:http`. Throws KubectlError. */
export function portsOf(text: string): { port: number; targetPort: number | string } {
  const [first = '', target] = text.split(':')
  const port = portOf(first)
  if (target === undefined) return { port, targetPort: port }
  const isNumber = /^[+-]?\d+$/.test(target)
  const problems = isNumber ? portNumber(Number(target)) : portName(target)
  if (problems.length > 0) throw new KubectlError(problems.join(','))
  return { port, targetPort: isNumber ? Number(target) : target }
}

function portOf(text: string): number {
  try {
    return parseUnsigned(text, 16)
  } catch (cause) {
    throw new KubectlError(asError(cause).message, { cause })
  }
}

const TCP = { tcp: flag(strings, [], 'Port pairs, as <port>:<targetPort>.') }

const clusterip: Command = defineGenerator({
  name: 'clusterip',
  use: 'NAME [--tcp=<port>:<targetPort>] [--dry-run=server|client|none] [options]',
  long: 'Create a service of type ClusterIP.',
  failure: 'failed to create ClusterIP service: ',
  remembers: false,
  flags: { ...TCP, clusterip: flag(string, '', "Cluster IP of the service; 'None' creates a headless service.") },
  make: (name, { flags }) => serviceOf(name, { type: 'ClusterIP', tcp: flags.tcp, clusterIP: flags.clusterip }),
})

const nodeport: Command = defineGenerator({
  name: 'nodeport',
  use: 'NAME [--tcp=port:targetPort] [--dry-run=server|client|none] [options]',
  long: 'Create a service of type NodePort.',
  failure: 'failed to create NodePort service: ',
  remembers: false,
  flags: { ...TCP, 'node-port': flag(int, 0, 'Node port of the service.') },
  make: (name, { flags }) => serviceOf(name, { type: 'NodePort', tcp: flags.tcp, nodePort: flags['node-port'] }),
})

const loadbalancer: Command = defineGenerator({
  name: 'loadbalancer',
  use: 'NAME [--tcp=port:targetPort] [--dry-run=server|client|none] [options]',
  long: 'Create a service of type LoadBalancer.',
  failure: 'failed to create LoadBalancer service: ',
  remembers: false,
  flags: TCP,
  make: (name, { flags }) => serviceOf(name, { type: 'LoadBalancer', tcp: flags.tcp }),
})

const externalname: Command = defineGenerator({
  name: 'externalname',
  use: 'NAME --external-name external.name [--dry-run=server|client|none] [options]',
  long: 'Create a service of type ExternalName, an alias for a name outside of the cluster.',
  failure: 'failed to create ExternalName service: ',
  remembers: false,
  flags: { ...TCP, 'external-name': flag(string, '', 'External DNS name of the service.', { required: true }) },
  make: (name, { flags }) =>
    serviceOf(name, { type: 'ExternalName', tcp: flags.tcp, externalName: flags['external-name'] }),
})

const TYPES: readonly CommandRow[] = [
  row('clusterip', 'Create a service of type ClusterIP', () => Promise.resolve(clusterip)),
  row('externalname', 'Create a service of type ExternalName', () => Promise.resolve(externalname)),
  row('loadbalancer', 'Create a service of type LoadBalancer', () => Promise.resolve(loadbalancer)),
  row('nodeport', 'Create a service of type NodePort', () => Promise.resolve(nodeport)),
]

export const service: Command = defineGroup({
  name: 'service',
  aliases: ['svc'],
  use: '[flags] [options]',
  long: 'Create a service of a certain type.',
  commands: TYPES,
})
