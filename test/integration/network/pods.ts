/**
 * Creates a node for tests in a network namespace, with a bridge and pods in separate namespaces, as CNI's bridge
 * plugin does. A routed host is outside. The pods are objects of a real API server but have no containers.
 */
import { spawn } from 'node:child_process'
import process from 'node:process'
import { createInterface } from 'node:readline'

import { Pods } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { eventually } from '#kits/lib/eventually.ts'

import { createNamespace, type NetworkNamespace } from '../proxy/network-bed.ts'
import type { Order } from './speaker.ts'

export const NODE = 'node-1'
export const RANGES: string[] = ['10.99.0.0/24', 'fd99::/64']
export const OUTSIDE = { ip: '192.0.2.7', ip6: '2001:db8::7' }

export interface Speaker {
  readonly ip: string
  readonly ip6: string
  /** To be put before a program that is to run where it is. */
  readonly within: readonly string[]
  /** The response of the other pod; undefined if it is unreachable. */
  tell(what: Order['what'], host: string, port: number): Promise<string | undefined>
  /** Runs a program where it is. */
  run(program: string, ...args: readonly string[]): Promise<string>
  /** Until it is so: rules follow in a moment. */
  reaches(other: Pick<Speaker, 'ip'> | string, port: number, isReached: boolean, what?: Order['what']): Promise<void>
}

export interface Bed extends AsyncDisposable {
  readonly node: NetworkNamespace
  /** The node itself, and a host that is no pod. */
  readonly onNode: Speaker
  readonly outside: Speaker
  /** Makes the Pod too. All listen on 80, 81, 90 and 443. */
  pod(namespace: string, name: string, labels: Record<string, string>, web?: number): Promise<Speaker>
}

const PORTS = ['80', '81', '90', '443']

export async function createBed(client: ApiClient): Promise<Bed> {
  const closing = new AsyncDisposableStack()
  const node = closing.use(await createNamespace('pol-node'))
  const ip = (...args: readonly string[]): Promise<string> => node.run('ip', ...args)
  await ip('link', 'add', 'br0', 'type', 'bridge')
  await ip('address', 'add', '10.99.0.1/24', 'dev', 'br0')
  await ip('address', 'add', 'fd99::1/64', 'dev', 'br0', 'nodad')
  await ip('link', 'set', 'br0', 'up')
  await node.run('sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1')
  const host = closing.use(await createNamespace('pol-out'))
  await join(node, host, 'out0')
  await ip('address', 'add', '192.0.2.1/24', 'dev', 'out0')
  await ip('address', 'add', '2001:db8::1/64', 'dev', 'out0', 'nodad')
  await settle(host, [`${OUTSIDE.ip}/24`, `${OUTSIDE.ip6}/64`], ['192.0.2.1', '2001:db8::1'])
  let last = 1
  return {
    node,
    onNode: await speaker(node, 'node', { ip: '10.99.0.1', ip6: 'fd99::1' }, closing),
    outside: await speaker(host, 'outside', OUTSIDE, closing),
    async pod(namespace, name, labels, web = 80) {
      last++
      const at = { ip: `10.99.0.${last}`, ip6: `fd99::${last.toString(16)}` }
      const inside = closing.use(await createNamespace(`pol-${name}`))
      await join(node, inside, `v${last}`)
      await ip('link', 'set', `v${last}`, 'master', 'br0')
      await settle(inside, [`${at.ip}/24`, `${at.ip6}/64`], ['10.99.0.1', 'fd99::1'])
      await createPod(client, { namespace, name, labels, web, ips: [at.ip, at.ip6] })
      return speaker(inside, name, at, closing)
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** A cable from the node into another namespace. */
async function join(node: NetworkNamespace, other: NetworkNamespace, name: string): Promise<void> {
  await node.run('ip', 'link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', other.name)
  await node.run('ip', 'link', 'set', name, 'up')
}

async function settle(
  inside: NetworkNamespace,
  addresses: readonly string[],
  gateways: readonly string[],
): Promise<void> {
  for (const address of addresses)
    await inside.run('ip', 'address', 'add', address, 'dev', 'eth0', ...(address.includes(':') ? ['nodad'] : []))
  await inside.run('ip', 'link', 'set', 'eth0', 'up')
  for (const via of gateways) await inside.run('ip', 'route', 'add', 'default', 'via', via)
}

interface PodPlan {
  readonly namespace: string
  readonly name: string
  readonly labels: Record<string, string>
  readonly web: number
  readonly ips: readonly string[]
  /** Of another than this. */
  readonly node?: string
}

/** Creates a pod object with the status that a kubelet would report. */
export async function createPod(client: ApiClient, plan: PodPlan): Promise<void> {
  const { namespace, name, labels, web, ips, node = NODE } = plan
  const container = {
    name: 'c',
    image: 'none',
    ports: [{ name: 'web', containerPort: web }],
    resources: {},
    terminationMessagePolicy: 'File',
  }
  const pod = await client.create(Pods, {
    metadata: { namespace, name, labels },
    spec: { nodeName: node, containers: [container] },
  })
  const podIPs = ips.map((ip) => ({ ip }))
  await client.updateStatus(Pods, { ...pod, status: { ...pod.status, phase: 'Running', podIP: ips[0] ?? '', podIPs } })
}

async function speaker(
  { within, run }: Pick<NetworkNamespace, 'within' | 'run'>,
  name: string,
  at: { readonly ip: string; readonly ip6: string },
  closing: AsyncDisposableStack,
): Promise<Speaker> {
  const [program = '', ...args] = within
  const speaking = [process.execPath, `${import.meta.dirname}/speaker.ts`, name, ...PORTS]
  const child = spawn(program, [...args, ...speaking], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  closing.defer(async () => {
    child.stdin.end()
    await ended
  })
  const ready = Promise.withResolvers<void>()
  const waiting = new Map<number, (said: string | undefined) => void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line === 'ready') return ready.resolve()
    const { id, said } = JSON.parse(line) as { id: number; said?: string }
    waiting.get(id)?.(said)
    waiting.delete(id)
  })
  const failed = ended.then(() => Promise.reject(new Error(`The speaker of ${name} has ended`)))
  failed.catch(() => undefined)
  await Promise.race([ready.promise, failed])
  let last = 0
  const tell: Speaker['tell'] = (what, host, port) => {
    const told = Promise.withResolvers<string | undefined>()
    last++
    waiting.set(last, told.resolve)
    child.stdin.write(`${JSON.stringify({ id: last, what, host, port })}\n`)
    return Promise.race([told.promise, failed])
  }
  return {
    ...at,
    within,
    tell,
    run,
    async reaches(other, port, isReached, what = 'tcp') {
      const host = typeof other === 'string' ? other : other.ip
      await eventually(
        () => tell(what, host, port),
        (said) => (said !== undefined) === isReached,
      )
    },
  }
}
