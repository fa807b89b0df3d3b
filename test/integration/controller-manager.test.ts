/**
 * Tests kube-controller-manager as separate processes with a kubeconfig, against a server over HTTPS. One leads; when
 * it is killed, the other takes over.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'

import { type ComponentPrograms, componentPrograms, until } from './component-programs.ts'

describe('kube-controller-manager', () => {
  let programs: ComponentPrograms
  const start: ComponentPrograms['start'] = (...args) => programs.start('--use-service-account-credentials', ...args)

  const replicaSet = (name: string): object => ({
    metadata: { name, namespace: 'default' },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  })

  async function madePods(name: string): Promise<{ metadata: { managedFields: { manager: string }[] } }[]> {
    const created = await programs.plane.request(
      'POST',
      '/apis/apps/v1/namespaces/default/replicasets',
      replicaSet(name),
    )
    assert.equal(created.status, 201, created.text)
    return until(`the pods of ${name}`, async () => {
      const path = `/api/v1/namespaces/default/pods?labelSelector=app%3D${name}`
      const { items } = (await programs.get(path)) as { items: never[] }
      return items.length === 2 ? items : undefined
    })
  }

  before(async () => {
    programs = await componentPrograms('kube-controller-manager')
  })

  after(() => programs[Symbol.asyncDispose]())

  it('becomes leader with a Lease, an event and metrics, and another instance takes over when it is killed', async () => {
    const { get, page, plane, holder } = programs
    const first = await start()
    const leader = await until('a leader', holder)
    assert.match(leader, /^.+_[0-9a-f-]{36}$/)
    const second = await start()
    const [pod] = await madePods('one')
    assert.equal(pod?.metadata.managedFields[0]?.manager, 'kube-controller-manager')
    assert.match(
      (await page(first.port, '/metrics', plane.token)).text,
      /leader_election_master_status\{name="kube-controller-manager"\} 1/,
    )
    assert.match(
      (await page(second.port, '/metrics', plane.token)).text,
      /leader_election_master_status\{name="kube-controller-manager"\} 0/,
    )
    const event = await until('the event', async () => {
      const { items } = (await get('/api/v1/namespaces/kube-system/events')) as {
        items: { message: string; reason: string; source: { component: string }; involvedObject: { kind: string } }[]
      }
      return items.find(({ reason }) => reason === 'LeaderElection')
    })
    assert.deepEqual(
      [event.message, event.source.component, event.involvedObject.kind],
      [`${leader} became leader`, 'kube-controller-manager', 'Lease'],
    )
    first.child.kill('SIGKILL')
    await until('another leader', async () => ((await holder()) === leader ? undefined : true))
    await madePods('two')
    const { items } = (await get('/api/v1/namespaces/kube-system/serviceaccounts')) as {
      items: { metadata: { name: string } }[]
    }
    assert.ok(items.some(({ metadata }) => metadata.name === 'replicaset-controller'))
    second.child.kill('SIGTERM')
    const [code] = (await once(second.child, 'exit')) as [number]
    assert.equal(code, 0, second.log())
    assert.doesNotMatch(second.log(), /forbidden/)
  })

  it('exits without any writes when it resumes and another instance is leader', async () => {
    const { get, holder } = programs
    const first = await start()
    await until('its lead', () => /Successfully acquired lease/.test(first.log()) || undefined)
    const leader = await holder()
    await madePods('before')
    const second = await start()
    first.child.kill('SIGSTOP')
    await until('another leader', async () => ((await holder()) === leader ? undefined : true))
    const made = await madePods('while-away')
    const ended = once(first.child, 'exit')
    first.child.kill('SIGCONT')
    const [code] = (await ended) as [number]
    assert.equal(code, 1, first.log())
    assert.match(first.log(), /leaderelection lost/)
    const path = '/api/v1/namespaces/default/pods?labelSelector=app%3Dwhile-away'
    const { items } = (await get(path)) as { items: { metadata: { name: string } }[] }
    assert.deepEqual(
      items.map(({ metadata }) => metadata.name),
      (made as unknown as typeof items).map(({ metadata }) => metadata.name),
    )
    second.child.kill('SIGTERM')
    await once(second.child, 'exit')
  })

  it('serves health pages to all users, and other pages to authorized users', async () => {
    const { page, plane } = programs
    const { port } = await start('--leader-elect=false', '--controllers=namespace,-replicaset')
    await until(
      'its controllers',
      async () => /namespace-controller ok/.test((await page(port, '/healthz?verbose')).text) || undefined,
    )
    assert.deepEqual(await page(port, '/healthz'), { status: 200, text: 'ok' })
    assert.match(
      (await page(port, '/healthz?verbose')).text,
      /^\[\+\]leaderElection ok\n\[\+\]namespace-controller ok\nhealthz check passed\n$/,
    )
    assert.equal((await page(port, '/metrics')).status, 403)
    assert.equal((await page(port, '/metrics', 'nobody')).status, 401)
    const { status, text } = await page(port, '/metrics', plane.token)
    assert.equal(status, 200)
    for (const family of [
      'workqueue_adds_total{name="namespace-controller"}',
      'rest_client_requests_total{code="200"',
      'process_cpu_seconds_total',
    ]) {
      assert.ok(text.includes(family), family)
    }
    assert.match((await page(port, '/flagz', plane.token)).text, /kube-controller-manager flagz\n/)
    assert.match((await page(port, '/statusz', plane.token)).text, /kube-controller-manager statusz\n/)
    for (const path of ['/', '/nothing']) assert.equal((await page(port, path, plane.token)).status, 404)
    const shown = JSON.parse((await page(port, '/configz', plane.token)).text) as {
      'kubecontrollermanager.config.k8s.io': { Generic: { LeaderElection: object } }
    }
    assert.deepEqual(shown['kubecontrollermanager.config.k8s.io'].Generic.LeaderElection, {
      leaderElect: false,
      leaseDuration: '8s',
      renewDeadline: '6s',
      retryPeriod: '500ms',
      resourceLock: 'leases',
      resourceName: 'kube-controller-manager',
      resourceNamespace: 'kube-system',
    })
  })

  it('exits with the error of an invalid controller setting', async () => {
    const wrong = ['--leader-elect=false', '--secure-port=0', '--allocate-node-cidrs', '--cluster-cidr=10.0.0.0/25']
    const { code, log } = await programs.ends(...wrong)
    assert.equal(code, 1)
    assert.match(log, /"Error building controllers" err="Controller: Invalid --cluster-cidr, mask size of cluster CIDR/)
  })
})
