/** kubectl cluster-info: shows the addresses of the control plane and of cluster services. */
import type { Service } from '#apis/core/v1.ts'

import { type Command, defineCommand, row } from '../command.ts'

const NAMESPACE = 'kube-system'
const LABEL = 'kubernetes.io/cluster-service=true'

export const clusterInfo: Command = defineCommand({
  name: 'cluster-info',
  use: '[flags] [options]',
  long: `Show the addresses of the control plane and of services with the label ${LABEL}.`,
  examples: `# Show the addresses of the control plane and of cluster services
kubectl cluster-info`,
  flags: {},
  commands: [
    row('dump', 'Dump information for debugging a cluster', async () => (await import('../cluster-info/dump.ts')).dump),
  ],
  async run({ session, stdout }) {
    await session.config()
    const requested = await session.namespace()
    const namespace = requested.isExplicit ? requested.namespace : NAMESPACE
    const server = await session.server()
    const rest = await session.rest()
    const path = `/api/v1/namespaces/${namespace}/services?labelSelector=${encodeURIComponent(LABEL)}`
    const { items } = await rest.json<{ readonly items: readonly Service[] }>(path)
    stdout.write(`Kubernetes control plane is running at ${server}\n`)
    for (const service of items) stdout.write(`${titleOf(service)} is running at ${addressOf(service, server)}\n`)
    stdout.write("\nTo further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.\n")
  },
})

function titleOf({ metadata }: Service): string {
  return metadata.labels?.['kubernetes.io/name'] || (metadata.name ?? '')
}

/** The address of its load balancer, or else the service's proxy path on the API server. */
function addressOf({ metadata, spec, status }: Service, server: string): string {
  const [ingress] = status?.loadBalancer?.ingress ?? []
  const { ports = [] } = spec ?? {}
  if (ingress !== undefined) {
    const host = ingress.ip || (ingress.hostname ?? '')
    return ports.map(({ port }) => `http://${host}:${port} `).join('')
  }
  const [first] = ports
  const isTls = first?.name === 'https' || first?.port === 443
  const parts = [...(isTls ? ['https'] : []), metadata.name ?? '', ...portOf(first?.name, isTls)]
  return `${server}/api/v1/namespaces/${metadata.namespace}/services/${parts.join(':')}/proxy`
}

/** A scheme requires the port in the path, even if it has no name. */
function portOf(name: string | undefined, hasScheme: boolean): string[] {
  return name === undefined || name === '' ? (hasScheme ? [''] : []) : [name]
}
