/**
 * Tests clusters that the management server builds on simulated machines: plan, approval, changes, failures, files
 * and removal.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Secrets } from '#apis/core/v1.ts'
import { realClock } from '#lib/clock.ts'
import { Clusters } from '#management/kinds/cluster.ts'
import { Operations } from '#management/kinds/operation.ts'
import { clusterText, simulatedBuild, withoutKubeconfig } from '#provision/simulated-build.fixture.ts'
import { SimulatedSite } from '#provision/simulated-site.fixture.ts'

import { type Answer, eventually, type ManagementBed, startManagementBed } from './bed.ts'

const ALL = ['etcd', 'controlplane', 'worker']
const ONE = clusterText({ '1': ALL })
const TWO = clusterText({ '1': ALL, '2': ['worker'] })
const PASSWORD = 'a-password-of-a-registry'

/** One site with machines 1 to 3 at a time. */
const world: { site: SimulatedSite; opening: Promise<void> } = { site: newSite(), opening: Promise.resolve() }

function newSite(): SimulatedSite {
  return new SimulatedSite(['1', '2', '3'].map((name) => ({ name, roles: [] })))
}

describe('a built cluster', () => {
  let bed: ManagementBed
  let owner = ''
  let other = ''

  before(async () => {
    bed = await startManagementBed(undefined, {
      site: {
        openMachines: async (...all) => {
          await world.opening
          return simulatedBuild(world.site).openMachines(...all)
        },
        openApi: (...all) => withoutKubeconfig(simulatedBuild(world.site).openApi)(...all),
        own: { includes: new Map(), archives: [] },
        uid: () => Promise.resolve(`uid-${world.site.machines.size}-${realClock.now()}`),
      },
    })
    owner = bed.administrator
    other = (await bed.createUser('other')).token
  })
  after(() => bed[Symbol.asyncDispose]())

  const send = (method: string, path: string, body?: object, token = owner): Promise<Answer> =>
    bed.request(method, `/v3/clusters${path}`, { token, ...(body !== undefined && { body }) })

  async function create(fields: object): Promise<string> {
    const made = await send('POST', '', { displayName: 'built', source: 'built', ...fields })
    assert.equal(made.status, 201, made.text)
    return made.body['cluster'].metadata.name as string
  }

  async function newest(cluster: string): Promise<Answer['body']> {
    const { body } = await send('GET', `/${cluster}/operations`)
    const [first] = body['items'] as Answer['body'][]
    return first === undefined ? {} : (await send('GET', `/${cluster}/operations/${first['metadata'].name}`)).body
  }

  /** Waits until the newest Operation has this type and phase. */
  async function until(cluster: string, type: string, phase: string): Promise<Answer['body']> {
    let found: Answer['body'] = {}
    await eventually(`${type} is ${phase}`, async () => {
      found = await newest(cluster)
      return found['spec']?.type === type && found['status']?.phase === phase
    }).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(found['status'])}`)
    })
    return found
  }

  function condition(cluster: string, type: string): string {
    const found = bed.running.objects.get(Clusters, cluster)?.status?.conditions?.find((one) => one.type === type)
    return `${found?.status}/${found?.reason}`
  }

  async function approve(cluster: string, operation: Answer['body']): Promise<void> {
    const { name } = operation['metadata']
    const { digest } = operation['status'].plan
    assert.equal((await send('POST', `/${cluster}/operations/${name}/approve`, { plan: digest })).status, 200)
  }

  it('shows all faults of a file, and creates nothing', async () => {
    const answer = await send('POST', '', {
      displayName: 'bad',
      source: 'built',
      file: `${ONE}nonsense: 1\nssh_key_path: /root/.ssh/id_rsa\nupgrade_strategy: 5\n`,
    })
    assert.equal(answer.status, 422)
    const causes = answer.body['details'].causes as { field: string; message: string }[]
    assert.ok(causes.some(({ field, message }) => field === 'file.nonsense' && message.includes('line')))
    assert.ok(causes.some(({ field }) => field === 'file.upgrade_strategy'))
    const secrets = await bed.running.cluster.client.list(Secrets, { namespace: 'hyperkube-management' })
    assert.ok(!secrets.items.some(({ metadata }) => metadata.name?.startsWith('build-')))
  })

  it('is built after its plan is approved, changed, and removed', async () => {
    world.site = newSite()
    const cluster = await create({ file: ONE })
    const planned = await until(cluster, 'Apply', 'Planned')
    assert.ok(planned['status'].plan.steps.length > 10)
    await eventually('it waits for approval', () => condition(cluster, 'Pending') === 'True/NeedsApproval')
    assert.equal(condition(cluster, 'Provisioned'), 'False/Planning')
    assert.equal(world.site.machines.get('1')?.services.size, 0)

    await approve(cluster, planned)
    const done = await until(cluster, 'Apply', 'Succeeded')
    assert.ok(done['status'].stages.length > 3)
    assert.ok(
      done['status'].stages.every((stage: Answer['body']) =>
        stage['steps'].every((step: Answer['body']) => step['state'] === 'Done'),
      ),
    )
    await eventually('it is updated', () => condition(cluster, 'Updated') === 'True/Applied')
    assert.equal(condition(cluster, 'Provisioned'), 'True/Built')
    assert.equal(world.site.machines.get('1')?.services.has('cluster-agent'), true)

    const log = await send('GET', `/${cluster}/operations/${done['metadata'].name}/log?follow=true`)
    assert.match(log.text, /Z \[etcd\] 1: start etcd\n/)
    assert.match(log.text, /Z Done\.\n$/)

    assert.equal((await send('PUT', `/${cluster}/build`, { file: TWO, approval: 'Automatic' })).status, 200)
    await eventually('the machine has joined', () => world.site.nodes.has('2'))
    await until(cluster, 'Apply', 'Succeeded')

    const removal = await send('DELETE', `/${cluster}`)
    assert.equal(removal.status, 202)
    await eventually('the cluster is gone', () => bed.running.objects.get(Clusters, cluster) === undefined)
    assert.equal(world.site.machines.get('1')?.services.size, 0)
    const [last] = bed.running.objects
      .list(Operations)
      .filter(({ spec }) => spec.cluster === cluster && spec.type === 'Remove')
    const path = `/${cluster}/operations/${last?.metadata.name}`
    const shown = await send('GET', path)
    assert.deepEqual([shown.status, shown.body['status'].phase, shown.body['status'].left], [200, 'Succeeded', []])
    assert.equal((await send('GET', path, undefined, other)).status, 404)
    await eventually('its secrets are gone', async () => {
      const { items } = await bed.running.cluster.client.list(Secrets, { namespace: 'hyperkube-management' })
      return !items.some(({ metadata }) => metadata.name === `build-${cluster}`)
    })
  })

  it('keeps keys and passwords out of objects, answers and logs, and gives files to owners only', async () => {
    world.site = newSite()
    const file = `${ONE}private_registries: [{url: registry.example, user: u, password: ${PASSWORD}}]\n`
    const cluster = await create({ file, approval: 'Automatic' })
    const done = await until(cluster, 'Apply', 'Succeeded')
    const config = world.site.machines.get('1')?.files.get('/var/lib/kubelet/config.json')?.content ?? ''
    assert.match(config, new RegExp(Buffer.from(`u:${PASSWORD}`).toString('base64')))

    const files: Record<string, string> = {}
    for (const name of ['cluster.yml', 'cluster.rkestate', 'kube_config_cluster.yml', 'ssh_key']) {
      const answer = await send('POST', `/${cluster}/files`, { file: name })
      assert.equal(answer.status, 200, answer.text)
      files[name] = answer.text
      assert.equal((await send('POST', `/${cluster}/files`, { file: name }, other)).status, 404)
    }
    assert.match(files['cluster.yml'] ?? '', new RegExp(PASSWORD))
    assert.match(files['kube_config_cluster.yml'] ?? '', /server: https:\/\/10\.0\.0\.1:6443/)
    const { desiredState } = JSON.parse(files['cluster.rkestate'] ?? '') as {
      desiredState: { certificatesBundle: Record<string, { keyPEM: string }> }
    }
    const keys = Object.values(desiredState.certificatesBundle).map(({ keyPEM }) => keyPEM.split('\n')[1] ?? '')
    const credential =
      world.site.machines.get('1')?.files.get('/etc/kubernetes/ssl/cluster-agent-credential')?.content ?? ''
    const secrets = [PASSWORD, credential, files['ssh_key']?.split('\n')[2] ?? '', ...keys].filter(
      (text) => text !== '',
    )
    assert.ok(secrets.length > 10)

    const log = await send('GET', `/${cluster}/operations/${done['metadata'].name}/log`)
    const shown = [
      JSON.stringify(bed.running.objects.list(Clusters)),
      JSON.stringify(bed.running.objects.list(Operations)),
      log.text,
      (await send('GET', `/${cluster}/build`)).text,
      bed.logged(),
      JSON.stringify(bed.audit),
    ]
    for (const secret of secrets) for (const text of shown) assert.equal(text.includes(secret), false, secret)
    assert.ok(bed.audit.some(({ route, user }) => route === '/v3/clusters/:cluster/files' && user !== undefined))
  })

  it('reports a failure, and continues after its cause is repaired', async () => {
    world.site = newSite()
    world.site.lose('2')
    const cluster = await create({ file: TWO, approval: 'Automatic' })
    const failed = await until(cluster, 'Apply', 'Failed')
    assert.match(failed['status'].message, /^Nothing was changed:\n2: .*no route to host/)
    await eventually('it waits', () => condition(cluster, 'Waiting') === 'True/Retrying')
    assert.ok(Date.parse(failed['status'].retryAt) > realClock.now())
    world.site.lost.clear()
    assert.equal((await send('POST', `/${cluster}/operations/${failed['metadata'].name}/retry`)).status, 200)
    await until(cluster, 'Apply', 'Succeeded')

    world.site.lose('2')
    await send('DELETE', `/${cluster}`)
    const stuck = await until(cluster, 'Remove', 'Failed')
    assert.match(stuck['status'].message, /Some machines could not be restored/)
    assert.equal((await send('DELETE', `/${cluster}`, { force: true })).status, 202)
    await eventually('the cluster is gone', () => bed.running.objects.get(Clusters, cluster) === undefined)
    const [last] = bed.running.objects
      .list(Operations)
      .filter(({ spec }) => spec.cluster === cluster && spec.type === 'Remove')
    assert.deepEqual(last?.status?.left, ['2: 2: no route to host'])
  })

  it('replaces a plan when the file changes, and rotates certificates on request', async () => {
    world.site = newSite()
    const cluster = await create({ file: ONE })
    const first = await until(cluster, 'Apply', 'Planned')
    await send('PUT', `/${cluster}/build`, { file: TWO })
    await eventually(
      'there is another plan',
      async () => (await newest(cluster))['metadata']?.name !== first['metadata'].name,
    )
    const second = await until(cluster, 'Apply', 'Planned')
    const before = await send('GET', `/${cluster}/operations/${first['metadata'].name}`)
    assert.equal(before.body['status'].phase, 'Superseded')
    assert.equal((await send('POST', `/${cluster}/operations/${first['metadata'].name}/approve`)).status, 409)
    assert.equal(
      (await send('POST', `/${cluster}/operations/${second['metadata'].name}/approve`, { plan: 'other' })).status,
      409,
    )
    await approve(cluster, second)
    await until(cluster, 'Apply', 'Succeeded')

    const certificate = (): string =>
      world.site.machines.get('1')?.files.get('/etc/kubernetes/ssl/kube-node.pem')?.content ?? ''
    const old = certificate()
    assert.equal(
      (await send('POST', `/${cluster}/operations`, { type: 'RotateCertificates', service: 'kubelet' })).status,
      201,
    )
    await until(cluster, 'RotateCertificates', 'Succeeded')
    assert.notEqual(certificate(), old)
    for (const body of [
      {},
      { type: 'Remove' },
      { type: 'SaveSnapshot', snapshot: '../x' },
      { type: 'RotateCertificates', service: 'x' },
    ])
      assert.equal((await send('POST', `/${cluster}/operations`, body)).status, 400, JSON.stringify(body))
  })

  it('stops an operation that is cancelled, and does not begin it again', async () => {
    world.site = newSite()
    const cluster = await create({ file: ONE })
    const planned = await until(cluster, 'Apply', 'Planned')
    assert.equal((await send('POST', `/${cluster}/operations/${planned['metadata'].name}/cancel`)).status, 200)
    await until(cluster, 'Apply', 'Cancelled')
    await eventually('the condition says it', () => condition(cluster, 'Updated') === 'False/NotApplied')
    assert.equal((await send('POST', `/${cluster}/operations`, { type: 'Apply' })).status, 201)
    const again = await until(cluster, 'Apply', 'Planned')
    assert.notEqual(again['metadata'].name, planned['metadata'].name)
  })

  it('stops a running operation that is cancelled', async () => {
    world.site = newSite()
    const cluster = await create({ file: ONE })
    const planned = await until(cluster, 'Apply', 'Planned')
    const gate = Promise.withResolvers<void>()
    world.opening = gate.promise
    await approve(cluster, planned)
    await until(cluster, 'Apply', 'Running')
    assert.equal((await send('POST', `/${cluster}/operations/${planned['metadata'].name}/cancel`)).status, 200)
    gate.resolve()
    await until(cluster, 'Apply', 'Cancelled')
    assert.equal(world.site.machines.get('1')?.services.size, 0)
  })

  it('has a first status before its machines have answered', async () => {
    world.site = newSite()
    const gate = Promise.withResolvers<void>()
    world.opening = gate.promise
    const cluster = await create({ file: ONE })
    let stages: Answer['body'][] = []
    await eventually('the plan is being made', async () => {
      const { status } = (await newest(cluster)) as { status?: Answer['body'] }
      stages = (status?.['stages'] ?? []) as Answer['body'][]
      return status?.['phase'] === 'Pending' && stages.length > 0
    })
    assert.deepEqual(
      stages.map(({ name, steps }) => [name, steps[0].state]),
      [['Planning', 'Running']],
    )
    const planning = (await newest(cluster))['metadata'].name as string
    assert.equal((await send('POST', `/${cluster}/operations`, { type: 'SaveSnapshot' })).status, 201)
    const waiting = await until(cluster, 'SaveSnapshot', 'Pending')
    assert.equal(waiting['status'].message, `It waits for operation ${planning}.`)
    gate.resolve()
    await eventually('the plan is there', async () => {
      const { body } = await send('GET', `/${cluster}/operations/${planning}`)
      stages = (body['status'].stages ?? []) as Answer['body'][]
      return body['status'].phase === 'Planned'
    })
    assert.equal(stages[0]?.['steps'][0].state, 'Done')
  })

  it('can be created with kubectl, but not with a password in the file', async () => {
    world.site = newSite()
    const { client } = bed.running.cluster
    const spec = { displayName: 'k', source: 'built', build: { file: ONE, approval: 'Automatic' } } as const
    await client.create(Clusters, { metadata: { name: 'by-kubectl' }, spec })
    await until('by-kubectl', 'Apply', 'Succeeded')
    const file = `${ONE}private_registries: [{url: r.example, user: u, password: hunter2}]\n`
    await client.patch(Clusters, { name: 'by-kubectl' }, { type: 'merge', value: { spec: { build: { file } } } })
    await eventually('it is refused', () => condition('by-kubectl', 'Updated') === 'False/InvalidFile')
    await client.delete(Clusters, { name: 'by-kubectl' })
    await eventually('the cluster is gone', () => bed.running.objects.get(Clusters, 'by-kubectl') === undefined)
    assert.equal(world.site.machines.get('1')?.services.size, 0)
  })
})
