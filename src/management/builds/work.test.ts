/** Tests that building a cluster survives kills of the server at every call to a machine or to the cluster's API. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ApiClient } from '#client/api-client.ts'
import { createMemoryApi } from '#kits/management/memory-api.ts'
import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { clusterText, simulatedBuild, withoutKubeconfig } from '#provision/simulated-build.fixture.ts'
import { SimulatedSite } from '#provision/simulated-site.fixture.ts'

import type { Cluster } from '../kinds/cluster.ts'
import type { Operation, OperationSpec } from '../kinds/operation.ts'
import { createSecrets, ensureSecrets } from './secrets.ts'
import { planWork, runWork, type Work, type WorkResult } from './work.ts'

const ALL = ['etcd', 'controlplane', 'worker']
const TWO = { '1': ALL, '2': ['worker'] }
const THREE = { '1': ALL, '2': ['worker'], '3': ['worker'] }
const DRAFTS = ['1', '2', '3'].map((name) => ({ name, roles: [] }))
const SERVER = { url: 'https://manager.example', certificateAuthority: '' }

/** An addon that the API of the cluster refuses. */
const REFUSED = 'name: refused'

/** A management cluster and machines. What it knows is in Secrets only. */
class Bed {
  readonly site = new SimulatedSite(DRAFTS)
  readonly client = new ApiClient({
    transport: createMemoryApi(realClock).transport,
    clock: realClock,
    userAgent: 'test',
  })
  readonly lines: string[] = []
  readonly uids: string[] = []
  readonly #cluster: Cluster = { metadata: { name: 'c-1', uid: 'u' }, spec: { displayName: 'one', source: 'built' } }

  static async create(): Promise<Bed> {
    const bed = new Bed()
    await createSecrets(bed.client, 'c-1', { random: secureRandom })
    return bed
  }

  async work(file: string, spec: Partial<OperationSpec>, name: string): Promise<Work> {
    const operation: Operation = { metadata: { name }, spec: { cluster: 'c-1', type: 'Apply', ...spec } }
    const secrets = await ensureSecrets(this.client, this.#cluster, { random: secureRandom })
    return { client: this.client, cluster: 'c-1', build: { file }, operation, secrets, server: SERVER }
  }

  async run(file: string, spec: Partial<OperationSpec> = {}, name = 'o-1'): Promise<WorkResult> {
    const watcher = { planned: () => undefined, progressed: () => undefined }
    const events = {
      say: (text: string) => void this.lines.push(text),
      begun: () => Promise.resolve(),
      found: async (uid: string) => void this.uids.push(uid),
      watcher,
    }
    const signal = new AbortController().signal
    return runWork(await this.work(file, spec, name), this.around, events, signal)
  }

  get around(): Parameters<typeof planWork>[1] {
    return {
      clock: realClock,
      random: secureRandom,
      env: {},
      folder: '/tmp/hyperkube-builds-test',
      etcdBinary: '',
      kubectl: () => Promise.reject(new Error('not used')),
      site: { ...this.#build(), uid: () => Promise.resolve('uid-of-the-cluster') },
    }
  }

  #build(): ReturnType<typeof simulatedBuild> {
    const build = simulatedBuild(this.site)
    return {
      ...build,
      openApi: (...options) => {
        const opened = withoutKubeconfig(build.openApi)(...options)
        const { api } = opened
        const apply: typeof api.apply = (manifest, signal) =>
          manifest.includes(REFUSED) ? Promise.reject(new Error('the addon is refused')) : api.apply(manifest, signal)
        return { ...opened, api: { ...api, apply } }
      },
    }
  }

  /** The contents of the machines, without the values of keys, which differ in every cluster. */
  shape(): unknown {
    return JSON.parse(
      JSON.stringify(this.site.snapshot(), (key, value: unknown) =>
        ['content', 'reads', 'state'].includes(key) || (typeof value === 'string' && value.includes('-----BEGIN'))
          ? undefined
          : value,
      ),
    )
  }
}

/** Every call takes a minute and a half. */
const EVERY = process.env['KILL_AT_EVERY_CALL'] === 'true' ? 1 : 11

/** Goes to `end` in one run, and with a kill before and after calls. */
async function endEverywhere(
  begin: (bed: Bed) => Promise<unknown>,
  end: (bed: Bed) => Promise<unknown>,
): Promise<number> {
  const whole = await Bed.create()
  await begin(whole)
  whole.site.killAt(Infinity, 'before')
  await end(whole)
  const calls = whole.site.calls.length
  for (let call = 1; call <= calls; call += EVERY)
    for (const moment of ['before', 'after'] as const) {
      const bed = await Bed.create()
      await begin(bed)
      bed.site.killAt(call, moment)
      // A kill after the last necessary step is no failure.
      await end(bed).catch(() => undefined)
      bed.site.killAt(Infinity, 'before')
      await end(bed)
      assert.deepEqual(bed.shape(), whole.shape(), `killed ${moment} call ${call}`)
    }
  return calls
}

describe('runWork() for an Operation on a built cluster', () => {
  it('builds a cluster whose agents connect to the server', async () => {
    const bed = await Bed.create()
    await bed.run(clusterText(TWO))
    assert.deepEqual(bed.uids, ['uid-of-the-cluster'])
    const { services, files } = bed.site.machines.get('1') ?? { services: new Map(), files: new Map() }
    assert.deepEqual(services.get('cluster-agent')?.spec.command.slice(1), [
      'cluster-agent',
      '--server=https://manager.example',
      '--kubeconfig=/etc/kubernetes/ssl/kubecfg-kube-cluster-agent.yaml',
      '--credential-file=/etc/kubernetes/ssl/cluster-agent-credential',
    ])
    const { credential } = (await bed.work('', {}, 'o-1')).secrets
    assert.equal(files.get('/etc/kubernetes/ssl/cluster-agent-credential')?.content, credential)
    assert.equal(bed.site.machines.get('2')?.services.has('cluster-agent'), false)
    assert.equal(bed.site.machines.get('2')?.files.has('/etc/kubernetes/ssl/cluster-agent-credential'), false)
  })

  it('lets the agents connect although an addon fails', async () => {
    const bed = await Bed.create()
    const addons = `addons: |\n  apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    ${REFUSED}\n`
    await assert.rejects(bed.run(clusterText(TWO, addons)), /the addon is refused/)
    assert.deepEqual(bed.uids, ['uid-of-the-cluster'])
  })

  it('has nothing to do in a second operation for the same file', async () => {
    const bed = await Bed.create()
    await bed.run(clusterText(TWO))
    const work = await bed.work(clusterText(TWO), {}, 'o-2')
    const plan = await planWork(work, bed.around, () => undefined, new AbortController().signal)
    assert.deepEqual([plan.steps, plan.faults], [[], []])
  })

  it('plans with the nodes of the cluster, so a machine can leave', async () => {
    const bed = await Bed.create()
    await bed.run(clusterText(THREE), {}, 'o-0')
    const work = await bed.work(clusterText(TWO), {}, 'o-1')
    const plan = await planWork(work, bed.around, () => undefined, new AbortController().signal)
    assert.deepEqual(plan.faults, [])
    assert.ok(plan.steps.some(({ host }) => host === '3'))
    assert.deepEqual(await bed.run(clusterText(TWO), { approvedPlan: plan.digest }), {})
    assert.equal(bed.site.machines.get('3')?.services.size, 0)
  })

  it('ends the same after a kill at any call of a new cluster', async () => {
    assert.ok(
      (await endEverywhere(
        () => Promise.resolve(),
        (bed) => bed.run(clusterText(TWO)),
      )) > 50,
    )
  })

  it('ends the same after a kill at any call of adding and removing a machine', async () => {
    const begin = (bed: Bed): Promise<unknown> => bed.run(clusterText(TWO), {}, 'o-0')
    await endEverywhere(begin, (bed) => bed.run(clusterText(THREE)))
    const larger = (bed: Bed): Promise<unknown> => bed.run(clusterText(THREE), {}, 'o-0')
    await endEverywhere(larger, (bed) => bed.run(clusterText(TWO)))
  })

  it('rotates certificates once, whatever call it is killed at', async () => {
    const begin = (bed: Bed): Promise<unknown> => bed.run(clusterText(TWO), {}, 'o-0')
    const rotate = (bed: Bed): Promise<unknown> => bed.run('', { type: 'RotateCertificates' })
    await endEverywhere(begin, rotate)
    const bed = await Bed.create()
    await begin(bed)
    await rotate(bed)
    const first = (await bed.work('', {}, 'o-1')).secrets.state
    await rotate(bed)
    assert.equal((await bed.work('', {}, 'o-1')).secrets.state, first)
  })

  it('removes a cluster from its machines, killed at any call', async () => {
    const begin = (bed: Bed): Promise<unknown> => bed.run(clusterText(TWO), {}, 'o-0')
    await endEverywhere(begin, (bed) => bed.run('', { type: 'Remove' }))
  })

  it('does not remove a cluster with an unreachable machine unless forced, and says what stays', async () => {
    const bed = await Bed.create()
    await bed.run(clusterText(TWO), {}, 'o-0')
    bed.site.lose('2')
    await assert.rejects(
      bed.run('', { type: 'Remove' }),
      /Some machines could not be restored:\n {2}2: 2: no route to host\nRepair/,
    )
    const { left } = await bed.run('', { type: 'Remove', force: true })
    assert.deepEqual(left, ['2: 2: no route to host'])
  })

  it('removes a cluster that was never begun without any connection', async () => {
    const bed = await Bed.create()
    bed.site.lose('1')
    assert.deepEqual(await bed.run(clusterText(TWO), { type: 'Remove' }), { left: [] })
  })

  it('asks for another approval if the machines have changed', async () => {
    const bed = await Bed.create()
    const plan = await planWork(
      await bed.work(clusterText(TWO), {}, 'o-1'),
      bed.around,
      () => undefined,
      new AbortController().signal,
    )
    assert.ok(plan.steps.length > 10)
    const { newPlan } = await bed.run(clusterText(THREE), { approvedPlan: plan.digest })
    assert.ok((newPlan?.steps.length ?? 0) > plan.steps.length)
    assert.equal(bed.site.machines.get('1')?.services.size, 0)
    assert.deepEqual(await bed.run(clusterText(TWO), { approvedPlan: plan.digest }), {})
  })

  it('says that snapshots and rotations need a cluster', async () => {
    const bed = await Bed.create()
    for (const type of ['SaveSnapshot', 'RestoreSnapshot', 'RotateCertificates', 'RotateEncryptionKey'] as const)
      await assert.rejects(bed.run(clusterText(TWO), { type, snapshot: 's' }), /There is no cluster yet/)
  })
})
