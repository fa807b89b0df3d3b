/** Computes the addresses of an Ingress: those of the nodes that run the controller. Pure. */
import type { Node, Pod } from '#apis/core/v1.ts'
import type { Ingress, IngressLoadBalancerIngress } from '#apis/networking/v1.ts'

/** External addresses, or internal ones if there are none; sorted, without duplicates. */
export function addressesFor(
  pods: readonly Pod[],
  nodes: ReadonlyMap<string, Node>,
): readonly IngressLoadBalancerIngress[] {
  const running = pods.filter(
    ({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.phase === 'Running',
  )
  const addresses = running.flatMap(({ spec }) => {
    const found = nodes.get(spec?.nodeName ?? '')?.status?.addresses ?? []
    const of = (type: string): string[] => found.filter((each) => each.type === type).map(({ address }) => address)
    const outside = of('ExternalIP')
    return outside.length > 0 ? outside : of('InternalIP')
  })
  return [...new Set(addresses)].toSorted().map((ip) => ({ ip }))
}

export function isPublished({ status }: Ingress, wanted: readonly IngressLoadBalancerIngress[]): boolean {
  const text = (list: readonly IngressLoadBalancerIngress[] = []): string =>
    list.map(({ ip = '', hostname = '' }) => `${ip} ${hostname}`).join('\n')
  return text(status?.loadBalancer?.ingress) === text(wanted)
}
