/** Tests GET and LIST over HTTP: resource versions, pages, selectors and tables. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Clock, realClock, sleep } from '#lib/clock.ts'

import { type Got, type Json, ofOurs, refused, startWire, TABLE, type Wire } from './server.ts'

let wire: Wire
let ns: string
let maps: string
let first: Json
before(async () => {
  wire = await startWire()
  ns = await wire.namespace()
  maps = `/api/v1/namespaces/${ns}/configmaps`
  for (const name of ['a', 'b', 'c']) {
    const made = await wire.must('POST', maps, { metadata: { name, labels: { l: 'x' } }, data: { k: 'v' } })
    first ??= made
  }
})
after(() => wire.stop())

const get = (path: string, accept?: string): Promise<Got> =>
  wire.request('GET', path, accept === undefined ? {} : { headers: { accept } })
const names = (list: Json): string[] => list.items.map(({ metadata }: Json) => metadata.name)
const INVALID_OPTIONS = { kind: 'ListOptions', group: 'meta.k8s.io' }

describe('reads with a resourceVersion', () => {
  it('return the latest list, a list not older than N, or the list at exactly N', async () => {
    const old = first.metadata.resourceVersion as string
    const now = (await wire.must('GET', maps)).metadata.resourceVersion as string
    assert.ok(BigInt(now) > BigInt(old))
    for (const [query, count, version] of [
      ['', 3, now],
      ['?limit=2', 2, now],
      ['?resourceVersion=0&limit=2', 3, undefined],
      [`?resourceVersion=${old}`, 3, undefined],
      [`?resourceVersion=${old}&resourceVersionMatch=NotOlderThan`, 3, undefined],
      [`?resourceVersion=${old}&limit=2`, 1, old],
      [`?resourceVersion=${old}&resourceVersionMatch=Exact`, 1, old],
      ['?resourceVersion=0&resourceVersionMatch=NotOlderThan', 3, undefined],
    ] as const) {
      const list = await wire.must('GET', maps + query)
      assert.equal(list.items.length, count, query)
      if (version !== undefined) assert.equal(list.metadata.resourceVersion, version, query)
      if (query.includes('Version=0&limit')) assert.ok(!('continue' in list.metadata))
    }
    assert.equal((await wire.must('GET', `${maps}/a?resourceVersion=${now}`)).metadata.name, 'a')
    assert.equal((await wire.must('GET', `${maps}/a?resourceVersion=0`)).metadata.name, 'a')
  })

  it('get 422 for contradictory options', async () => {
    const page = await wire.must('GET', `${maps}?limit=1`)
    const token = encodeURIComponent(page.metadata.continue)
    for (const [query, text] of [
      [
        '?resourceVersion=0&resourceVersionMatch=Exact',
        'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
      ],
      [
        '?resourceVersionMatch=Exact',
        'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
      ],
      [
        `?resourceVersion=0&resourceVersionMatch=NotOlderThan&continue=${token}`,
        'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided',
      ],
      [
        '?resourceVersion=1&resourceVersionMatch=Nope',
        'resourceVersionMatch: Unsupported value: "Nope": supported values: "Exact", "NotOlderThan", ""',
      ],
    ] as const) {
      const { details } = await refused(get(maps + query), 422, {
        reason: 'Invalid',
        message: `ListOptions.meta.k8s.io "" is invalid: ${text}`,
      })
      assert.deepEqual({ kind: details.kind, group: details.group }, INVALID_OPTIONS)
    }
  })

  it('get 504 for a future version and 400 for an invalid version', async () => {
    const far = await get(`${maps}?resourceVersion=99999999`)
    assert.equal(far.status, 504)
    assert.equal(far.headers['retry-after'], '1')
    const { message, reason, details } = far.json()
    assert.match(message, /^Timeout: Too large resource version: 99999999, current: \d+$/)
    assert.equal(reason, 'Timeout')
    assert.deepEqual(details, {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    })
    const text = 'Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
    await refused(get(`${maps}?resourceVersion=abc`), 400, {
      reason: 'BadRequest',
      message: `invalid resource version: resourceVersion: ${text}`,
    })
    const watch = await get(`${maps}?resourceVersion=abc&watch=1`)
    assert.equal(watch.status, 500)
    assert.equal(watch.json().reason, undefined)
    assert.equal(watch.json().message, `resourceVersion: ${text}`)
  })
})

describe('pages of a list', () => {
  it('have the revision of the first page, and remainingItemCount without a selector', async () => {
    const one = await wire.must('GET', `${maps}?limit=2`)
    assert.deepEqual([names(one), one.metadata.remainingItemCount], [['a', 'b'], 1])
    await wire.must('POST', maps, { metadata: { name: 'd' } })
    const token = encodeURIComponent(one.metadata.continue)
    const two = await wire.must('GET', `${maps}?continue=${token}`)
    assert.deepEqual([names(two), two.metadata.resourceVersion], [['c'], one.metadata.resourceVersion])
    assert.ok(!('continue' in two.metadata) && !('remainingItemCount' in two.metadata))
    for (const selector of ['labelSelector=l%3Dx', 'fieldSelector=metadata.name!%3Dz']) {
      const narrow = await wire.must('GET', `${maps}?limit=1&${selector}`)
      assert.ok('continue' in narrow.metadata && !('remainingItemCount' in narrow.metadata), selector)
    }
    assert.deepEqual(names(await wire.must('GET', `${maps}?limit=1&continue=${token}&resourceVersion=0`)), ['c'])
    await wire.must('DELETE', `${maps}/d`)
  })

  it('are ordered by namespace, then name', async () => {
    const other = await wire.namespace()
    await wire.must('POST', `/api/v1/namespaces/${other}/configmaps`, { metadata: { name: '0' } })
    const list = await wire.must('GET', '/api/v1/configmaps')
    const keys: string[] = list.items.map(({ metadata }: Json) => `${metadata.namespace}/${metadata.name}`)
    assert.deepEqual(
      keys,
      [...keys].sort((x, y) => (x < y ? -1 : 1)),
    )
  })

  it('get 400 for an invalid continue token', async () => {
    const { metadata } = await wire.must('GET', `${maps}?limit=1`)
    await refused(get(`${maps}?continue=${encodeURIComponent(metadata.continue)}&resourceVersion=5`), 400, {
      reason: 'BadRequest',
      message: 'specifying resource version is not allowed when using continue',
    })
    await refused(get(`${maps}?continue=%25%25`), 400, {
      reason: 'BadRequest',
      message: /^continue key is not valid: |^invalid continue token: /,
    })
  })
})

describe('reads of a compacted revision', () => {
  it('get 410, with a token that continues at the current revision', ofOurs, async () => {
    let leapMs = 0
    const clock: Clock = {
      ...realClock,
      now: () => realClock.now() + leapMs,
      after: (delayMs, task, options) => realClock.after(delayMs === 30_000 ? 50 : delayMs, task, options),
    }
    await using own = await startWire({ clock, flags: ['--etcd-compaction-interval=300ms'] })
    const path = '/api/v1/namespaces/default/configmaps'
    for (const name of ['a', 'b', 'c']) await own.must('POST', path, { metadata: { name } })
    const { metadata } = await own.must('GET', `${path}?limit=1`)
    const exact = `${path}?resourceVersion=${metadata.resourceVersion}&resourceVersionMatch=Exact`
    const page = `${path}?limit=1&continue=${encodeURIComponent(metadata.continue)}`
    assert.equal((await own.must('GET', exact)).items.length, 3)
    await own.must('PUT', `${path}/c`, { metadata: { name: 'c' }, data: { n: '1' } })
    leapMs = 10 * 60_000
    let got = await own.request('GET', exact)
    for (let tries = 0; got.status === 200 && tries < 100; tries++) {
      await sleep(realClock, 50)
      got = await own.request('GET', exact)
    }
    await refused(Promise.resolve(got), 410, {
      reason: 'Expired',
      message: 'The resourceVersion for the provided list is too old.',
    })
    const expired = await refused(own.request('GET', page), 410, {
      reason: 'Expired',
      message: /^The provided continue parameter is too old to display a consistent list result\. /,
    })
    const fresh = encodeURIComponent(expired.metadata.continue)
    const rest = await own.must('GET', `${path}?continue=${fresh}`)
    assert.deepEqual(names(rest), ['b', 'c'])
    assert.ok(BigInt(rest.metadata.resourceVersion) > BigInt(metadata.resourceVersion))
    const [event, ...more] = await own.watch(`${path}?watch=1&resourceVersion=1`, 2)
    assert.equal(event?.type, 'ERROR')
    assert.match(event?.object.message, /^too old resource version: 1 \(\d+\)$/)
    assert.deepEqual([event?.object.reason, event?.object.code, more.length], ['Expired', 410, 0])
  })
})

describe('list parameters', () => {
  it('get 400 for invalid selectors', async () => {
    for (const [query, text] of [
      ['labelSelector=a%20b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
      ['labelSelector=a%2C', "found '', expected: identifier after ','"],
      [
        'fieldSelector=spec.x%3Dy',
        '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
      ],
      ['fieldSelector=x', `invalid selector: 'x'; can't understand 'x'`],
    ] as const) {
      await refused(get(`${maps}?${query}`), 400, { reason: 'BadRequest', message: text })
    }
    assert.deepEqual(names(await wire.must('GET', `${maps}?fieldSelector=metadata.name%3Da`)), ['a'])
    assert.deepEqual(names(await wire.must('GET', `${maps}?labelSelector=l%20in%20(x%2Cy)%2C!z&limit=1`)), ['a'])
  })

  it('count metadata.name=x as the object name for authorization', async () => {
    const role = {
      metadata: { name: 'one-map' },
      rules: [
        {
          apiGroups: [''],
          resources: ['configmaps'],
          resourceNames: ['a'],
          verbs: ['list', 'watch', 'deletecollection'],
        },
      ],
    }
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${ns}`
    await wire.must('POST', `${rbac}/roles`, role)
    await wire.must('POST', `${rbac}/rolebindings`, {
      metadata: { name: 'jane' },
      subjects: [{ kind: 'User', name: 'jane', apiGroup: 'rbac.authorization.k8s.io' }],
      roleRef: { kind: 'Role', name: 'one-map', apiGroup: 'rbac.authorization.k8s.io' },
    })
    const asJane = (method: string, query: string): Promise<Got> => wire.request(method, maps + query, { as: 'jane' })
    let status = 403
    for (let tries = 0; status === 403 && tries < 50; tries++) {
      ;({ status } = await asJane('GET', '?fieldSelector=metadata.name%3Da'))
    }
    assert.equal(status, 200)
    assert.equal((await asJane('GET', '?fieldSelector=metadata.name%3Da&watch=1&timeoutSeconds=1')).status, 200)
    // Not so for many that are deleted.
    await refused(asJane('DELETE', '?fieldSelector=metadata.name%3Da&dryRun=All'), 403, {
      message: `configmaps is forbidden: User "jane" cannot deletecollection resource "configmaps" in API group "" in the namespace "${ns}"`,
    })
    for (const query of ['', '?fieldSelector=metadata.name%3Db', '?fieldSelector=metadata.name!%3Da']) {
      assert.equal((await asJane('GET', query)).status, 403, query)
    }
  })

  it('may include limits, unknown and repeated parameters, and missing namespaces', async () => {
    assert.equal((await wire.must('GET', `${maps}?limit=-1&unknown=1`)).items.length, 3)
    assert.equal((await wire.must('GET', `${maps}?limit=1&limit=2`)).items.length, 1)
    await refused(get(`${maps}?limit=abc`), 400, {
      reason: 'BadRequest',
      message: 'strconv.ParseInt: parsing "abc": invalid syntax',
    })
    const nowhere = await get('/api/v1/namespaces/no-such-namespace/configmaps')
    assert.deepEqual([nowhere.status, nowhere.json().items], [200, []])
  })
})

describe('table responses', () => {
  it('have the metadata of the list, numbers as numbers, and partial objects', async () => {
    const table = (await get(`${maps}?limit=2`, TABLE)).json()
    assert.deepEqual([table.kind, table.apiVersion], ['Table', 'meta.k8s.io/v1'])
    assert.deepEqual(Object.keys(table.metadata).toSorted(), ['continue', 'remainingItemCount', 'resourceVersion'])
    assert.deepEqual(
      table.columnDefinitions.map(({ name, type, format, priority }: Json) => [name, type, format, priority]),
      [
        ['Name', 'string', 'name', 0],
        ['Data', 'string', '', 0],
        ['Age', 'string', '', 0],
      ],
    )
    const [row] = table.rows
    assert.deepEqual(row.cells.slice(0, 2), ['a', 1])
    assert.match(row.cells[2], /^\d+[smh]/)
    assert.deepEqual([row.object.kind, row.object.apiVersion], ['PartialObjectMetadata', 'meta.k8s.io/v1'])
    assert.ok(!('data' in row.object))
    const one = (await get(`${maps}/a`, TABLE)).json()
    assert.deepEqual(one.rows[0].cells.slice(0, 2), ['a', 1])
  })

  it('are served in v1beta1, and includeObject selects the object in rows', async () => {
    const beta = (await get(maps, 'application/json;as=Table;v=v1beta1;g=meta.k8s.io')).json()
    assert.equal(beta.apiVersion, 'meta.k8s.io/v1beta1')
    assert.equal(beta.rows[0].object.apiVersion, 'meta.k8s.io/v1beta1')
    const none = (await get(`${maps}?includeObject=None`, TABLE)).json()
    assert.equal(none.rows[0].object, null)
    const whole = (await get(`${maps}?includeObject=Object`, TABLE)).json()
    assert.deepEqual([whole.rows[0].object.kind, whole.rows[0].object.data], ['ConfigMap', { k: 'v' }])
    await refused(get(`${maps}?includeObject=Nope`, `${TABLE},application/json`), 400, { reason: 'BadRequest' })
  })
  it('list FlowSchemas by matching precedence', async () => {
    const table = (await get('/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas', TABLE)).json()
    const names = table.rows.map(({ cells }: { cells: unknown[] }) => cells[0])
    assert.deepEqual(names.slice(0, 3), ['exempt', 'probes', 'system-leader-election'])
    assert.equal(names.at(-1), 'catch-all')
  })
})
