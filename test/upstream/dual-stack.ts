/**
 * Tests dual-stack networking: `node test/upstream/dual-stack.ts`, as root, with containers and upstream's kubectl. The
 * two nodes are network namespaces. It tests pods, Services with every family policy, node ports, load balancers and
 * DNS, over IPv4 and IPv6, from pods and from outside. Exits with 0 only if all steps passed, and leaves nothing.
 */
import { type NamespacedCluster, startNamespacedCluster } from './namespaced-cluster.ts'
import { mustBe, Shown, untilSo } from './shown.ts'
import { podsOf, serviceOf, webOf } from './three-nodes-objects.ts'

const FLAGS = [
  '--cluster-cidr=10.244.0.0/16,fd00:10:244::/56',
  '--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112',
]
const shown = new Shown()

const bracketed = (address: string): string => (address.includes(':') ? `[${address}]` : address)

async function told(cluster: NamespacedCluster, kind: string, name: string, path: string): Promise<readonly string[]> {
  const said = await cluster.kubectl('get', kind, name, '--output', `jsonpath={${path}}`)
  return said.split(' ').filter((text) => text !== '')
}

const mustBeBoth = (addresses: readonly string[], what: string): void =>
  mustBe(addresses.map((one) => (one.includes(':') ? 6 : 4)).join() === '4,6', `${what}: ${addresses.join(', ')}`)

/** Everywhere, all of them; rules and neighbours may take a moment. */
async function allAnswer(cluster: NamespacedCluster, hosts: readonly string[]): Promise<string> {
  const pods = podsOf(await cluster.kubectl('get', 'pods', '--selector=app=web', '--output=json'))
  for (const { name } of pods)
    for (const host of hosts)
      await untilSo(
        () => cluster.exec(name, 'curl', '--silent', '--globoff', '--max-time', '3', `http://${host}/hostname`),
        (said) => said?.startsWith('web-') === true,
        20,
      )
  return `${hosts.join(', ')} from ${pods.length} nodes`
}

async function neighbourReaches({ neighbour }: NamespacedCluster, hosts: readonly string[]): Promise<string> {
  for (const host of hosts)
    await untilSo(
      () =>
        neighbour
          .run('curl', '--silent', '--globoff', '--max-time', '3', `http://${host}/hostname`)
          .catch((error: Error) => error.message),
      (said) => said.startsWith('web-'),
      20,
    )
  return hosts.join(', ')
}

async function tryServices(cluster: NamespacedCluster): Promise<void> {
  const web = { selector: { app: 'web' }, ports: [{ name: 'web', port: 80, targetPort: 8080 }] }
  await cluster.apply(
    serviceOf('both', { ...web, ipFamilyPolicy: 'PreferDualStack' }),
    serviceOf('six', { ...web, ipFamilies: ['IPv6'] }),
    serviceOf('node-port', { ...web, ipFamilyPolicy: 'RequireDualStack', type: 'NodePort' }),
    serviceOf('headless', { ...web, ipFamilyPolicy: 'PreferDualStack', clusterIP: 'None' }),
    serviceOf('balanced', {
      ...web,
      ipFamilyPolicy: 'PreferDualStack',
      type: 'LoadBalancer',
      ports: [{ name: 'web', port: 8090, targetPort: 8080 }],
    }),
  )
  await shown.step('PreferDualStack: reached by both', async () => {
    const addresses = await told(cluster, 'service', 'both', '.spec.clusterIPs[*]')
    mustBeBoth(addresses, 'cluster IPs')
    return await allAnswer(cluster, addresses.map(bracketed))
  })
  await shown.step('IPv6 alone', async () => {
    const [address = ''] = await told(cluster, 'service', 'six', '.spec.clusterIPs[*]')
    mustBe(address.includes(':'), address)
    return await allAnswer(cluster, [bracketed(address), 'six'])
  })
  await shown.step('NodePort, at each address of each node', async () => {
    const [port = ''] = await told(cluster, 'service', 'node-port', '.spec.ports[0].nodePort')
    const hosts = cluster.nodes.flatMap(({ addresses }) => addresses.map((one) => `${bracketed(one)}:${port}`))
    return await neighbourReaches(cluster, hosts)
  })
  await shown.step('LoadBalancer, at each of its addresses', async () => {
    const wanted = cluster.nodes.flatMap(({ addresses }) => addresses)
    let ingress: readonly string[] = []
    await untilSo(
      async () => (ingress = await told(cluster, 'service', 'balanced', '.status.loadBalancer.ingress[*].ip')),
      (found) => found.toSorted().join() === wanted.toSorted().join(),
      30,
    )
    return await neighbourReaches(
      cluster,
      ingress.map((one) => `${bracketed(one)}:8090`),
    )
  })
  await shown.step('names have both', () => names(cluster))
}

async function names(cluster: NamespacedCluster): Promise<string> {
  const [pod] = podsOf(await cluster.kubectl('get', 'pods', '--selector=app=web', '--output=json'))
  const dig = async (name: string): Promise<readonly string[]> => {
    const answers = ['A', 'AAAA'].map(async (type) =>
      ((await cluster.exec(pod?.name ?? '', 'dig', '+short', '+search', name, type)) ?? '').trim().split('\n'),
    )
    return (await Promise.all(answers)).flat()
  }
  const both = await dig('both')
  mustBe(both.join() === (await told(cluster, 'service', 'both', '.spec.clusterIPs[*]')).join(), both.join())
  const headless = await dig('headless')
  mustBe(headless.length === 2 * cluster.nodes.length, headless.join())
  return `${both.join(', ')}; headless: ${headless.length} addresses`
}

async function main(): Promise<void> {
  await using cluster = await startNamespacedCluster({ many: 2, flags: FLAGS })
  await cluster.apply(webOf())
  await cluster.kubectl('rollout', 'status', 'daemonset/web', '--timeout=180s')
  await shown.step('nodes have ranges and addresses of both', async () => {
    const seen: string[] = []
    for (const { name } of cluster.nodes) {
      const ranges = await told(cluster, 'node', name, '.spec.podCIDRs[*]')
      mustBeBoth(ranges, name)
      mustBeBoth(await told(cluster, 'node', name, '.status.addresses[?(@.type=="InternalIP")].address'), name)
      seen.push(ranges.join(' and '))
    }
    return seen.join('; ')
  })
  await shown.step('pods reach each other by both', async () => {
    const said = await cluster.kubectl(
      'get',
      'pods',
      '--selector=app=web',
      '--output=jsonpath={.items[*].status.podIPs[*].ip}',
    )
    const addresses = said.split(' ')
    mustBe(addresses.length === 4, said)
    return await allAnswer(
      cluster,
      addresses.map((one) => `${bracketed(one)}:8080`),
    )
  })
  await tryServices(cluster)
}

await shown.step('all of it, and nothing is left', async () => {
  await main()
  return ''
})
process.exitCode = shown.end()
