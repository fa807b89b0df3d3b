/**
 * Tests `hyperkube kube-network-policies` on a node outside of `up`: its identity, packets between nodes, and the rules
 * after its end.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'

import { NetworkPolicies } from '#apis/networking/v1.ts'
import { joinKubeconfig } from '#cluster/joining.ts'
import { eventually } from '#kits/lib/eventually.ts'

import { HYPERKUBE } from '../../upstream/ours.ts'
import { whyNoNetworks } from '../proxy/network-bed.ts'
import { createFlannelBed, type FlannelBed, type FlannelNode } from './flannel-bed.ts'
import { createPod } from './pods.ts'

const skip = (await whyNoNetworks()) ?? false
if (skip !== false) process.stderr.write(`the program kube-network-policies: skipping, ${skip}\n`)
const run = promisify(execFile)
const ACCOUNT = 'kube-network-policies'
const HEALTH = '127.0.0.1:9080'

describe('program kube-network-policies', { skip }, () => {
  let bed: FlannelBed
  let [a, b] = [] as unknown as [FlannelNode, FlannelNode]
  let folder = ''
  let own = ''
  let program: ChildProcess | undefined

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'hyperkube-policies-'))
    bed = await createFlannelBed({ Type: 'host-gw' }, ['a', 'b'])
    ;[a, b] = bed.nodes as [FlannelNode, FlannelNode]
    for (const node of bed.nodes) {
      await bed.register(node)
      const labels = { app: node.name }
      const plan = { namespace: 'default', name: `pod-${node.name}`, labels, web: 8080, ips: [node.podIp] }
      await createPod(bed.client, { ...plan, node: node.name })
      await node.pod.serve(node.name, 8080)
    }
    await Promise.all(bed.nodes.map((node) => node.start()))
    own = join(folder, 'kubeconfig')
    await writeFile(own, await kubeconfigOf(bed.kubeconfig), { mode: 0o600 })
  })
  after(async () => {
    program?.kill('SIGKILL')
    await bed?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  const onB = (...args: readonly string[]): Promise<string> => b.host.namespace.run(HYPERKUBE, ACCOUNT, ...args)

  /** Resolves when policies hold. */
  async function start(): Promise<void> {
    const flags = [`--kubeconfig=${own}`, '--hostname-override=b', `--healthz-bind-address=${HEALTH}`]
    const enter = `--net=/run/netns/${b.host.namespace.name}`
    program = spawn('nsenter', [enter, HYPERKUBE, ACCOUNT, ...flags], { stdio: ['ignore', 'inherit', 'ignore'] })
    await eventually(health, (said) => said === 'ok')
  }
  const health = (): Promise<string> =>
    b.host.namespace.run('curl', '--silent', `http://${HEALTH}/healthz`).catch(() => 'nobody')

  async function kill(): Promise<void> {
    const ended = once(program as ChildProcess, 'exit')
    program?.kill('SIGKILL')
    await ended
  }

  const reaches = (isReached: boolean): Promise<unknown> =>
    eventually(
      async () => (await a.pod.ask('tcp', b.podIp, 8080))[0],
      (said) => said === (isReached ? `b ${a.podIp}` : 'timeout'),
    )

  const policy = (name: string, ingress: object[]): Promise<unknown> =>
    bed.client.create(NetworkPolicies, {
      metadata: { namespace: 'default', name },
      spec: { podSelector: { matchLabels: { app: 'b' } }, policyTypes: ['Ingress'], ingress },
    })

  it('enforces policies with the permissions of its cluster role, also after it exits', async () => {
    await reaches(true)
    await policy('deny', [])
    await start()
    await reaches(false)
    await kill()
    await reaches(false)
    await policy('from-a', [{ from: [{ podSelector: { matchLabels: { app: 'a' } } }] }])
    await start()
    await reaches(true)
    await bed.client.delete(NetworkPolicies, { namespace: 'default', name: 'from-a' })
    await reaches(false)
  })

  it('removes its nftables rules with --cleanup, and no others', async () => {
    await kill()
    await b.host.namespace.run('nft', 'add', 'table', 'inet', 'foreign')
    await onB('--cleanup')
    await onB('--cleanup')
    await reaches(true)
    const tables = await b.host.namespace.run('nft', 'list', 'tables')
    assert.match(tables, /table inet foreign/)
    assert.doesNotMatch(tables, /policies/)
  })
})

/** Of the account that the cluster has for it, with a token. */
async function kubeconfigOf(admin: string): Promise<string> {
  const kubectl = async (...args: readonly string[]): Promise<string> =>
    (await run(HYPERKUBE, ['kubectl', `--kubeconfig=${admin}`, ...args])).stdout
  const token = await kubectl('create', 'token', ACCOUNT, '--namespace=kube-system')
  const view = JSON.parse(await kubectl('config', 'view', '--raw', '--output=json')) as {
    readonly clusters: readonly [{ readonly cluster: Readonly<Record<string, string>> }]
  }
  const { server = '', 'certificate-authority-data': ca = '' } = view.clusters[0].cluster
  return joinKubeconfig(server, Buffer.from(ca, 'base64').toString(), token.trim())
}
