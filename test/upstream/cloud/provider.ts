/**
 * The provider of the simulated cloud for our cloud-controller-manager, loaded by `--cloud-provider`. `--cloud-config`
 * contains the address of the script.
 */
import type { Node } from '#apis/core/v1.ts'
import {
  type BalancerRequest,
  type CloudProvider,
  ImplementedElsewhere,
  type InstanceMetadata,
  type LoadBalancer,
  type ProviderOptions,
  type Route,
} from '#cloud/provider.ts'

export function createProvider({ config = '' }: ProviderOptions): CloudProvider {
  const call = async <T>(method: string, args: object, signal: AbortSignal): Promise<T> => {
    const body = JSON.stringify(args)
    const answer = await fetch(`${config.trim()}/${method}`, { method: 'POST', body, signal })
    const text = await answer.text()
    if (answer.status === 501) throw new ImplementedElsewhere(text)
    if (answer.status !== 200) throw new Error(text)
    return (text === '' ? undefined : JSON.parse(text)) as T
  }
  const named = ({ metadata: { name } }: Node): object => ({ node: name })
  const about = ({
    service: { metadata, spec },
    nodes = [],
  }: BalancerRequest & { nodes?: readonly Node[] }): object => ({
    service: `${metadata.namespace}/${metadata.name}`,
    nodes: nodes.map((node) => node.metadata.name),
    ports: spec.ports?.length ?? 0,
  })
  const told = ({ node, addresses, destination }: Route): object => ({ node, addresses, destination })
  const balancer: LoadBalancer = {
    find: async (request) => (await call<LoadBalancerAnswer>('find', about(request), request.signal)) ?? undefined,
    ensure: (request) => call('ensure', about(request), request.signal),
    update: (request) => call('update', about(request), request.signal),
    remove: (request) => call('remove', about(request), request.signal),
  }
  return {
    name: 'pretend',
    instances: {
      exists: (node, signal) => call('exists', named(node), signal),
      isShutDown: (node, signal) => call('isShutDown', named(node), signal),
      metadata: async (node, signal) =>
        (await call<InstanceMetadata | null>('metadata', named(node), signal)) ?? undefined,
    },
    loadBalancer: balancer,
    routes: {
      list: (_, signal) => call('listRoutes', {}, signal),
      create: (_, route, signal) => call('createRoute', told(route), signal),
      remove: (_, route, signal) => call('removeRoute', told(route), signal),
    },
  }
}

type LoadBalancerAnswer = Awaited<ReturnType<LoadBalancer['ensure']>> | null
