/**
 * Tests priority and fairness as clients see it; `WIRE_REFERENCE` runs it against upstream's server (see
 * wire/server.ts). Tests of limits use separate priority levels, so that they delay no other requests.
 */
import assert from 'node:assert/strict'
import { request } from 'node:https'
import { after, before, describe, it } from 'node:test'

import { realClock, sleep } from '#lib/clock.ts'

import { type Got, type Json, ofOurs, startWire, type Wire } from './wire/server.ts'

const FLOW = '/apis/flowcontrol.apiserver.k8s.io/v1'
const MAPS = '/api/v1/namespaces/default/configmaps'
const DEBUG = '/debug/api_priority_and_fairness'

let wire: Wire
before(async () => {
  wire = await startWire()
  const metadata = { name: 'fairness-jane' }
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  await wire.request('POST', `${rbac}/clusterroles`, {
    body: { metadata, rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['*'] }] },
  })
  await wire.request('POST', `${rbac}/clusterrolebindings`, {
    body: {
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: metadata.name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'jane' }],
    },
  })
})
after(() => wire[Symbol.asyncDispose]())

const get = (path: string): Promise<Got> => wire.request('GET', path)
const asJane = (path: string): Promise<Got> => wire.request('GET', path, { as: 'jane' })
const flowOf = ({ headers }: Got): unknown[] => [
  headers['x-kubernetes-pf-flowschema-uid'],
  headers['x-kubernetes-pf-prioritylevel-uid'],
]

async function until<T>(ask: () => Promise<T>, isRight: (value: T) => boolean): Promise<T> {
  for (let tries = 0; ; tries++) {
    const value = await ask()
    if (isRight(value) || tries > 200) return value
    await sleep(realClock, 25)
  }
}

/** A sample of /metrics; 0 when it is not there. */
async function metric(name: string, labels: Readonly<Record<string, string>>): Promise<number> {
  const { text } = await get('/metrics')
  const pairs = Object.entries(labels)
    .map(([label, value]) => `${label}="${value}"`)
    .sort()
  const line = text.split('\n').find((one) => one.startsWith(`apiserver_flowcontrol_${name}{${pairs.join(',')}} `))
  return Number(line?.split(' ').at(-1) ?? 0)
}

/** A level of this name, and a schema that puts jane's reads of config maps into it. */
async function limitJane(name: string, limited: object): Promise<AsyncDisposable & Record<'schema' | 'level', Json>> {
  const metadata = { name }
  const level = await wire.must('POST', `${FLOW}/prioritylevelconfigurations`, {
    metadata,
    spec: { type: 'Limited', limited },
  })
  const schema = await wire.must('POST', `${FLOW}/flowschemas`, {
    metadata,
    spec: {
      matchingPrecedence: 50,
      priorityLevelConfiguration: { name },
      distinguisherMethod: { type: 'ByUser' },
      rules: [
        {
          subjects: [{ kind: 'User', user: { name: 'jane' } }],
          resourceRules: [{ verbs: ['*'], apiGroups: [''], resources: ['configmaps'], namespaces: ['*'] }],
        },
      ],
    },
  })
  await until(
    () => asJane(MAPS),
    (got) => flowOf(got)[0] === schema.metadata.uid,
  )
  return {
    schema,
    level,
    async [Symbol.asyncDispose]() {
      await wire.must('DELETE', `${FLOW}/flowschemas/${name}`)
      await wire.must('DELETE', `${FLOW}/prioritylevelconfigurations/${name}`)
    },
  }
}

/** So many writes of jane's whose bodies are yet to come: they have their seats until `finish`, which tells the codes. */
async function holdSeats(name: string, count: number): Promise<() => Promise<(number | undefined)[]>> {
  const headers = { authorization: 'Bearer jane-token', 'content-type': 'application/json', 'content-length': '2' }
  const held = Array.from({ length: count }, () => {
    const asking = request(`${wire.url}${MAPS}`, { method: 'POST', headers, rejectUnauthorized: false, agent: false })
    const code = new Promise<number | undefined>((resolve, reject) => {
      asking.on('response', (answer) => resolve(answer.resume().statusCode)).on('error', reject)
    })
    asking.flushHeaders()
    return () => (asking.end('{}'), code)
  })
  await counted(name, 'executing', count)
  return () => Promise.all(held.map((finish) => finish()))
}

/** Until so many of a level's requests run or wait. */
async function counted(name: string, phase: 'executing' | 'inqueue', wanted: number): Promise<void> {
  const labels = { flow_schema: name, priority_level: name }
  const count = await until(
    () => metric(`current_${phase}_requests`, labels),
    (now) => now === wanted,
  )
  assert.equal(count, wanted, `${phase} of ${name}`)
}

describe('API priority and fairness', () => {
  it('adds the FlowSchema and priority level to every response to an authenticated user', async () => {
    const uidOf = async (kind: string, name: string): Promise<string> =>
      (await wire.must('GET', `${FLOW}/${kind}/${name}`)).metadata.uid
    const exempt = [await uidOf('flowschemas', 'exempt'), await uidOf('prioritylevelconfigurations', 'exempt')]
    const usual = [
      await uidOf('flowschemas', 'global-default'),
      await uidOf('prioritylevelconfigurations', 'global-default'),
    ]
    for (const [path, status] of [
      [MAPS, 200],
      [`${MAPS}/nothing`, 404],
      ['/nowhere', 404],
      [`${MAPS}?watch=1&timeoutSeconds=1`, 200],
    ] as const) {
      const got = await get(path)
      assert.deepEqual([got.status, ...flowOf(got)], [status, ...exempt], path)
    }
    assert.deepEqual(flowOf(await asJane('/api/v1/nodes')), usual, 'refused')
    assert.deepEqual(flowOf(await asJane(MAPS)), usual)
    assert.deepEqual(flowOf(await wire.request('GET', '/healthz', { as: 'nobody' }))[1], exempt[1])
  })

  it('rejects a request without a free seat in a level without queues with 429', async () => {
    const limitResponse = { type: 'Reject' }
    await using made = await limitJane('none', { nominalConcurrencyShares: 0, borrowingLimitPercent: 0, limitResponse })
    const finish = await holdSeats('none', 1)
    const refused = await wire.request('GET', MAPS, { as: 'jane', headers: { accept: 'application/json' } })
    assert.deepEqual(
      [refused.status, refused.text, refused.headers['content-type'], refused.headers['x-content-type-options']],
      [429, 'Too many requests, please try again later.\n', 'text/plain; charset=utf-8', 'nosniff'],
    )
    assert.equal(refused.headers['retry-after'], '1')
    assert.deepEqual(flowOf(refused), [made.schema.metadata.uid, made.level.metadata.uid])
    const labels = { flow_schema: 'none', priority_level: 'none' }
    assert.equal(await metric('rejected_requests_total', { ...labels, reason: 'concurrency-limit' }), 1)
    assert.equal((await get(MAPS)).status, 200, 'others are not held up')
    assert.deepEqual(await finish(), [422])
    assert.equal((await asJane(MAPS)).status, 200)
  })

  it('rejects requests to a full queue and requests that wait too long with 429, and runs the others', async () => {
    const queuing = { queues: 1, handSize: 1, queueLengthLimit: 2 }
    const limitResponse = { type: 'Queue', queuing }
    await using _ = await limitJane('few', { nominalConcurrencyShares: 1, borrowingLimitPercent: 0, limitResponse })
    const labels = { flow_schema: 'few', priority_level: 'few' }
    const seats = await metric('current_limit_seats', { priority_level: 'few' })
    assert.equal(seats, 3)
    const finish = await holdSeats('few', seats)
    const late = await asJane(`${MAPS}?timeout=1s`)
    assert.deepEqual([late.status, late.text], [429, 'Too many requests, please try again later.\n'])
    assert.equal(await metric('rejected_requests_total', { ...labels, reason: 'time-out' }), 1)
    const patient = [asJane(MAPS), asJane(MAPS)]
    await counted('few', 'inqueue', 2)
    const full = await asJane(MAPS)
    assert.deepEqual([full.status, full.headers['retry-after']], [429, '1'])
    assert.equal(await metric('rejected_requests_total', { ...labels, reason: 'queue-full' }), 1)
    assert.deepEqual(await finish(), [422, 422, 422])
    for (const one of await Promise.all(patient)) assert.equal(one.status, 200)
    assert.equal(await metric('current_inqueue_requests', labels), 0)
  })

  it('gives a watch a seat only while it starts', async () => {
    const limitResponse = { type: 'Reject' }
    await using _ = await limitJane('once', { nominalConcurrencyShares: 0, borrowingLimitPercent: 0, limitResponse })
    const labels = { flow_schema: 'once', priority_level: 'once' }
    const watches: Promise<Got>[] = []
    for (let count = 1; count <= 3; count++) {
      watches.push(asJane(`${MAPS}?watch=1&timeoutSeconds=2`))
      const begun = (): Promise<number> => metric('request_execution_seconds_count', { ...labels, type: 'watch' })
      assert.equal(await until(begun, (now) => now === count), count)
    }
    for (const watch of await Promise.all(watches)) assert.equal(watch.status, 200)
    assert.equal(await metric('current_executing_requests', labels), 0)
  })

  it('limits concurrent requests to the seats of each priority level', async () => {
    const { items }: Json = await wire.must('GET', `${FLOW}/prioritylevelconfigurations`)
    const rows = items.map(({ metadata, spec, status }: Json) => {
      const { nominalConcurrencyShares: shares, lendablePercent, limitResponse } = spec.limited ?? spec.exempt
      const { queues, handSize, queueLengthLimit } = limitResponse?.queuing ?? {}
      const queuing = queues === undefined ? (limitResponse?.type ?? '') : [queues, handSize, queueLengthLimit].join()
      assert.deepEqual(status, {})
      return `${metadata.name} ${spec.type} ${shares}/${lendablePercent} ${queuing}`.trim()
    })
    assert.deepEqual(rows, [
      'catch-all Limited 5/0 Reject',
      'exempt Exempt 0/0',
      'global-default Limited 20/50 128,6,50',
      'leader-election Limited 10/0 16,4,50',
      'node-high Limited 40/25 64,6,50',
      'system Limited 30/33 64,6,50',
      'workload-high Limited 40/50 128,6,50',
      'workload-low Limited 100/90 128,6,50',
    ])
    const nominal = await Promise.all(
      items.map(({ metadata }: Json) => metric('nominal_limit_seats', { priority_level: metadata.name })),
    )
    assert.deepEqual(nominal, [13, 0, 49, 25, 98, 74, 98, 245])
    const bounds = (kind: string): Promise<number> => metric(`${kind}_limit_seats`, { priority_level: 'workload-low' })
    assert.deepEqual([await bounds('lower'), await bounds('upper')], [24, 845])
  })

  it('creates and maintains mandatory and suggested objects', async () => {
    const { items }: Json = await wire.must('GET', `${FLOW}/flowschemas`)
    const rows = items.map(({ metadata, spec }: Json) => {
      assert.equal(metadata.annotations['apf.kubernetes.io/autoupdate-spec'], 'true')
      const { matchingPrecedence, priorityLevelConfiguration, distinguisherMethod } = spec
      return `${metadata.name} ${matchingPrecedence} ${priorityLevelConfiguration.name} ${distinguisherMethod?.type ?? ''}`.trim()
    })
    assert.deepEqual(rows, [
      'catch-all 10000 catch-all ByUser',
      'exempt 1 exempt',
      'global-default 9900 global-default ByUser',
      'kube-controller-manager 800 workload-high ByNamespace',
      'kube-scheduler 800 workload-high ByNamespace',
      'kube-system-service-accounts 900 workload-high ByNamespace',
      'probes 2 exempt',
      'service-accounts 9000 workload-low ByUser',
      'system-leader-election 100 leader-election ByUser',
      'system-node-high 400 node-high ByUser',
      'system-nodes 500 system ByUser',
    ])
    for (const { metadata, spec, status } of items) {
      const managers = metadata.managedFields.map(({ manager, operation, subresource }: Json) =>
        [manager, operation, subresource ?? ''].join(' '),
      )
      assert.deepEqual(managers.sort(), [
        'api-priority-and-fairness-config-consumer-v1 Apply status',
        'api-priority-and-fairness-config-producer-v1 Update ',
      ])
      const [{ lastTransitionTime, ...condition }] = status.conditions
      assert.match(lastTransitionTime, /^\d{4}-.*Z$/)
      assert.deepEqual(condition, {
        type: 'Dangling',
        status: 'False',
        reason: 'Found',
        message: `This FlowSchema references the PriorityLevelConfiguration object named "${spec.priorityLevelConfiguration.name}" and it exists`,
      })
    }
  })

  it('sets the condition Dangling of a FlowSchema until its priority level exists', async () => {
    const spec = { priorityLevelConfiguration: { name: 'nopl' }, matchingPrecedence: 9000 }
    await wire.must('POST', `${FLOW}/flowschemas`, { metadata: { name: 'dangling' }, spec })
    const condition = async (): Promise<Json> =>
      (await wire.must('GET', `${FLOW}/flowschemas/dangling`)).status.conditions?.[0]
    const { status, reason, message } = await until(condition, (found) => found?.status === 'True')
    assert.deepEqual(
      [status, reason, message],
      [
        'True',
        'NotFound',
        'This FlowSchema references the PriorityLevelConfiguration object named "nopl" but there is no such object',
      ],
    )
    const table = await wire.request('GET', `${FLOW}/flowschemas/dangling`, {
      headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    })
    assert.equal(table.json().rows[0].cells.at(-1), 'True')
    const limited = { limitResponse: { type: 'Reject' } }
    await wire.must('POST', `${FLOW}/prioritylevelconfigurations`, {
      metadata: { name: 'nopl' },
      spec: { type: 'Limited', limited },
    })
    assert.equal((await until(condition, (found) => found?.status === 'False')).reason, 'Found')
    await wire.must('DELETE', `${FLOW}/flowschemas/dangling`)
    await wire.must('DELETE', `${FLOW}/prioritylevelconfigurations/nopl`)
  })

  // Upstream looks once a minute.
  it('allows only label changes of mandatory objects, and recreates them after a deletion', ofOurs, async () => {
    for (const [kind, name, words] of [
      ['flowschemas', 'catch-all', "spec of 'catch-all' must equal the fixed value"],
      ['flowschemas', 'exempt', "spec of 'exempt' must equal the fixed value"],
      ['prioritylevelconfigurations', 'catch-all', "spec of 'catch-all' must equal the fixed value"],
    ] as const) {
      const path = `${FLOW}/${kind}/${name}`
      const object = await wire.must('GET', path)
      const spec = kind === 'flowschemas' ? { rules: [] } : { limited: { ...object.spec.limited, lendablePercent: 7 } }
      const body = { ...object, spec: { ...object.spec, ...spec } }
      const refused = await wire.request('PUT', path, { body })
      assert.equal(refused.status, 422)
      assert.ok(refused.json().message.endsWith(words), refused.json().message)
      const { uid } = object.metadata
      const labelled = await wire.must('PATCH', path, { metadata: { labels: { mine: 'x' } } }, MERGE)
      assert.equal(labelled.metadata.labels.mine, 'x')
      await wire.must('DELETE', path)
      const again = await until(
        () => get(path),
        (got) => got.status === 200 && got.json().metadata.uid !== uid,
      )
      assert.deepEqual([again.status, again.json().metadata.labels], [200, undefined])
    }
    const exempt = `${FLOW}/prioritylevelconfigurations/exempt`
    const lending = await wire.must('PATCH', exempt, { spec: { exempt: { lendablePercent: 5 } } }, MERGE)
    assert.equal(lending.spec.exempt.lendablePercent, 5)
    await wire.must('PATCH', exempt, { spec: { exempt: { lendablePercent: 0 } } }, MERGE)
  })

  it('dumps priority levels, queues and requests on debug pages', async () => {
    const queuing = { queues: 2, handSize: 1, queueLengthLimit: 5 }
    const limitResponse = { type: 'Queue', queuing }
    await using _ = await limitJane('shown', { nominalConcurrencyShares: 1, borrowingLimitPercent: 0, limitResponse })
    const finish = await holdSeats('shown', 3)
    const patient = asJane(MAPS)
    await counted('shown', 'inqueue', 1)
    const rowsOf = async (path: string): Promise<{ text: string; head: string; rows: string[][] }> => {
      const { text, headers, status } = await get(`${DEBUG}/${path}`)
      assert.deepEqual([status, headers['content-type']], [200, 'text/plain; charset=utf-8'])
      const [head = '', ...lines] = text.trimEnd().split('\n')
      const rows = lines.map((line) => line.split(',').map((cell) => cell.trim()))
      return { text, head, rows: rows.filter(([level]) => level === 'shown') }
    }
    const levels = await rowsOf('dump_priority_levels')
    assert.equal(
      levels.head,
      'PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests',
    )
    assert.deepEqual(levels.rows[0]?.slice(0, 6), ['shown', '1', 'false', 'false', '1', '3'])
    const queues = await rowsOf('dump_queues')
    assert.match(
      queues.head,
      /^PriorityLevelName, Index, +PendingRequests, ExecutingRequests, SeatsInUse, NextDispatchR, +InitialSeatsSum, MaxSeatsSum, TotalWorkSum$/,
    )
    const busy = queues.rows.find((row) => row[2] === '1') ?? []
    assert.deepEqual([queues.rows.length, ...busy.slice(2, 5)], [2, '1', '3', '3'])
    assert.match(busy[5] ?? '', /^\d+\.\d{8}ss$/)
    assert.deepEqual(busy.slice(6), ['1', '1', '0.00300000ss'])
    const requests = await rowsOf('dump_requests')
    assert.match(
      requests.head,
      /^PriorityLevelName, FlowSchemaName, +QueueIndex, RequestIndexInQueue, FlowDistingsher, ArriveTime, +InitialSeats, FinalSeats, AdditionalLatency, StartTime$/,
    )
    const waiting = requests.rows.filter((row) => row[3] === '0')
    assert.deepEqual([waiting.length, waiting[0]?.at(-1)], [1, '0001-01-01T00:00:00Z'])
    assert.equal(requests.rows.filter((row) => row[3] === '-1').length, 3)
    const detailed = await rowsOf('dump_requests?includeRequestDetails=1')
    assert.ok(
      detailed.head
        .replaceAll(/ +/g, '')
        .endsWith('UserName,Verb,APIPath,Namespace,Name,APIVersion,Resource,SubResource'),
    )
    const details = detailed.rows.find((row) => row[3] === '0')?.slice(10)
    assert.deepEqual(details, ['jane', 'list', MAPS, 'default', '', 'v1', 'configmaps', ''])
    const own = detailed.text.split('\n').find((line) => line.includes('/dump_requests')) ?? ''
    assert.deepEqual(
      own
        .split(',')
        .slice(0, 4)
        .map((cell) => cell.trim()),
      ['exempt', 'exempt', '-1', '-1'],
    )
    await finish()
    await patient
  })

  it('has upstream’s metrics', async () => {
    const { text } = await get('/metrics')
    const names = new Set([...text.matchAll(/^# TYPE apiserver_flowcontrol_(\S+)/gm)].map(([, name]) => name))
    for (const name of `rejected_requests_total dispatched_requests_total current_inqueue_requests
      current_inqueue_seats current_executing_requests current_executing_seats current_limit_seats nominal_limit_seats
      lower_limit_seats upper_limit_seats request_wait_duration_seconds request_execution_seconds
      request_queue_length_after_enqueue priority_level_request_utilization priority_level_seat_utilization demand_seats
      demand_seats_average demand_seats_high_watermark demand_seats_smoothed demand_seats_stdev target_seats
      seat_fair_frac work_estimated_seats watch_count_samples read_vs_write_current_requests current_r dispatch_r latest_s
      next_s_bounds next_discounted_s_bounds`.split(/\s+/)) {
      assert.ok(names.has(name), name)
    }
    for (const name of ['inflight', 'inqueue'])
      assert.match(text, new RegExp(`^apiserver_current_${name}_requests`, 'm'))
    const use = await metric('priority_level_seat_utilization_count', { phase: 'executing', priority_level: 'system' })
    assert.ok(use > 1e8, 'in nanoseconds')
  })
})

const MERGE = { headers: { 'content-type': 'application/merge-patch+json' } }
