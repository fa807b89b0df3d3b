/** Tests POST, PUT, PATCH and apply over HTTP: responses, conflicts, generated names and limits. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { secureRandom } from '#lib/random.ts'

import { type Got, type Json, ofOurs, PATCHES, refused, startWire, type Wire } from './server.ts'

let wire: Wire
let ns: string
let maps: string
before(async () => {
  wire = await startWire()
  ns = await wire.namespace()
  maps = `/api/v1/namespaces/${ns}/configmaps`
})
after(() => wire.stop())

const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Got> =>
  wire.request('POST', path, { body, headers })
const put = (path: string, body: unknown): Promise<Got> => wire.request('PUT', path, { body })
const patch = (type: keyof typeof PATCHES, path: string, body: unknown): Promise<Got> =>
  wire.request('PATCH', path, { body, headers: PATCHES[type] })
const make = (name: string, data: Record<string, string> = {}): Promise<Json> =>
  wire.must('POST', maps, { metadata: { name }, data })
const detailsOf = (name: string): object => ({ name, kind: 'configmaps' })
const TEMPLATE = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }

describe('creation of an object', () => {
  it('responds with 201, and with 409 for an existing name', async () => {
    assert.equal((await post(maps, { metadata: { name: 'twice' } })).status, 201)
    await refused(post(maps, { metadata: { name: 'twice' } }), 409, {
      reason: 'AlreadyExists',
      message: 'configmaps "twice" already exists',
      details: detailsOf('twice'),
    })
  })

  it('checks the namespace and the resourceVersion in the body', async () => {
    await refused(post(maps, { metadata: { name: 'x', namespace: 'other' } }), 400, {
      reason: 'BadRequest',
      message: 'the namespace of the provided object does not match the namespace sent on the request',
    })
    await refused(post('/api/v1/namespaces/no-such/configmaps', { metadata: { name: 'x' } }), 404, {
      reason: 'NotFound',
      message: 'namespaces "no-such" not found',
      details: { name: 'no-such', kind: 'namespaces' },
    })
    const versioned = await post(maps, { metadata: { name: 'x', resourceVersion: '1' } })
    assert.equal(versioned.status, 500)
    assert.equal(versioned.json().message, 'resourceVersion should not be set on objects to be created')
    const tried = await post(`${maps}?dryRun=All`, { metadata: { name: 'x', resourceVersion: '1' } })
    assert.equal(tried.status, 201, 'a version does not matter where nothing is stored')
    assert.equal(tried.json().metadata.resourceVersion, '1')
  })

  it('ignores an invalid resourceVersion, and rejects a valid one after all other checks', async () => {
    for (const resourceVersion of ['0', 'abc', '18446744073709551616']) {
      const name = `version-${resourceVersion}`
      assert.equal((await post(maps, { metadata: { name, resourceVersion } })).status, 201)
      assert.equal((await post(maps, { metadata: { name, resourceVersion } })).status, 409)
    }
    const nowhere = '/api/v1/namespaces/no-such/configmaps'
    assert.equal((await post(nowhere, { metadata: { name: 'x', resourceVersion: '1' } })).status, 404)
    assert.equal((await post(maps, { metadata: { name: 'UPPER', resourceVersion: '1' } })).status, 422)
    const put = { metadata: { name: 'no-such', resourceVersion: 'abc' } }
    assert.equal((await wire.request('PUT', `${maps}/no-such`, { body: put })).status, 404)
  })

  it('responds with 403 and a cause in a terminating namespace', async () => {
    const ending = await wire.namespace()
    await wire.must('DELETE', `/api/v1/namespaces/${ending}`)
    const because = `namespace ${ending} is being terminated`
    const path = `/api/v1/namespaces/${ending}/configmaps`
    await refused(post(path, { metadata: { name: 'x' } }), 403, {
      reason: 'Forbidden',
      message: `configmaps "x" is forbidden: unable to create new content in namespace ${ending} because it is being terminated`,
      details: {
        name: 'x',
        kind: 'configmaps',
        causes: [{ reason: 'NamespaceTerminating', message: because, field: 'metadata.namespace' }],
      },
    })
  })

  it('generates a name of the truncated prefix and five characters', async () => {
    const long = 'n'.repeat(70)
    for (const [generateName, base] of [
      ['x-', 'x-'],
      [long, long.slice(0, 58)],
    ] as const) {
      const { metadata } = await wire.must('POST', maps, { metadata: { generateName } })
      assert.match(metadata.name, new RegExp(`^${base}[bcdfghjklmnpqrstvwxz2456789]{5}$`))
      assert.equal(metadata.generateName, generateName)
    }
    await refused(post(maps, { data: {} }), 422, {
      reason: 'Invalid',
      message: 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    })
  })
})

describe('creation with generateName', () => {
  it('responds with 409 and Retry-After if eight generated names exist', ofOurs, async () => {
    await using own = await startWire({ random: { ...secureRandom, int: () => 0 } })
    const path = '/api/v1/namespaces/default/configmaps'
    await own.must('POST', path, { metadata: { generateName: 'x-' } })
    const taken = await own.request('POST', path, { body: { metadata: { generateName: 'x-' } } })
    assert.equal(taken.status, 409)
    assert.equal(taken.headers['retry-after'], '1')
    const { reason, message, details } = taken.json()
    assert.equal(reason, 'AlreadyExists')
    assert.equal(
      message,
      'configmaps "x-bbbbb" already exists, the server was not able to generate a unique name for the object',
    )
    assert.deepEqual(details, { name: 'x-bbbbb', kind: 'configmaps', retryAfterSeconds: 1 })
  })
})

describe('update of an object', () => {
  it('checks the resourceVersion and the UID', async () => {
    const first = await make('up', { k: '1' })
    await refused(put(`${maps}/up`, { metadata: { name: 'b' } }), 400, {
      reason: 'BadRequest',
      message: 'the name of the object (b) does not match the name on the URL (up)',
    })
    const second = await wire.must('PUT', `${maps}/up`, { metadata: { name: 'up' }, data: { k: '2' } })
    assert.notEqual(second.metadata.resourceVersion, first.metadata.resourceVersion)
    await refused(
      put(`${maps}/up`, { metadata: { name: 'up', resourceVersion: first.metadata.resourceVersion } }),
      409,
      {
        reason: 'Conflict',
        message:
          'Operation cannot be fulfilled on configmaps "up": the object has been modified; please apply your changes to the latest version and try again',
        details: detailsOf('up'),
      },
    )
    await refused(put(`${maps}/up`, { metadata: { name: 'up', uid: 'other' } }), 409, {
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on configmaps "up": StorageError: invalid object, Code: 4, Key: /registry/configmaps/${ns}/up, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: ${first.metadata.uid}`,
    })
  })

  it('requires a resourceVersion for some kinds', async () => {
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${ns}/leases`
    await wire.must('POST', leases, { metadata: { name: 'l' } })
    await refused(put(`${leases}/l`, { metadata: { name: 'l' } }), 422, {
      reason: 'Invalid',
      message:
        'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
    })
  })

  it('writes nothing without a change', async () => {
    const made = await make('same', { k: '1' })
    const body = { metadata: { name: 'same' }, data: { k: '1' } }
    const apply = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'same' }, data: { k: '1' } }
    const applied = (await patch('apply', `${maps}/same?fieldManager=m`, apply)).json()
    const versions: string[] = []
    for (const answer of [
      put(`${maps}/same`, body),
      patch('merge', `${maps}/same`, { data: { k: '1' } }),
      patch('strategic', `${maps}/same`, { data: { k: '1' } }),
      patch('json', `${maps}/same`, [{ op: 'replace', path: '/data/k', value: '1' }]),
      patch('apply', `${maps}/same?fieldManager=m`, apply),
    ]) {
      const got = await answer
      assert.equal(got.status, 200, got.text)
      versions.push(got.json().metadata.resourceVersion)
      assert.deepEqual(got.json().metadata.managedFields, applied.metadata.managedFields)
    }
    assert.deepEqual([...new Set(versions)], [applied.metadata.resourceVersion])
    const { metadata } = await wire.must('GET', maps)
    const events = await wire.watch(
      `${maps}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dsame&resourceVersion=${made.metadata.resourceVersion}`,
      2,
    )
    assert.equal(events.length, 1)
    assert.ok(BigInt(metadata.resourceVersion) >= BigInt(applied.metadata.resourceVersion))
  })

  it('creates a missing object by PUT for some kinds', async () => {
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${ns}/leases`
    const made = await put(`${leases}/put`, { metadata: { name: 'put', resourceVersion: '1' } })
    assert.equal(made.status, 201, made.text)
    await refused(put(`${leases}/put2`, { metadata: { name: 'put2', uid: 'u' } }), 409, {
      reason: 'Conflict',
      message:
        /^Operation cannot be fulfilled on leases\.coordination\.k8s\.io "put2": .*Precondition failed: UID in precondition: u, UID in object meta: /,
    })
    await refused(put(`${maps}/none`, { metadata: { name: 'none' } }), 404, {
      reason: 'NotFound',
      message: 'configmaps "none" not found',
      details: detailsOf('none'),
    })
  })
})

describe('patch of an object', () => {
  it('supports three patch types', async () => {
    await make('p', { k: '1' })
    const merged = await patch('merge', `${maps}/p`, { data: { m: '2', k: null } })
    assert.deepEqual(merged.json().data, { m: '2' })
    const strategic = await patch('strategic', `${maps}/p`, { data: { s: '3' } })
    assert.deepEqual(strategic.json().data, { m: '2', s: '3' })
    const operations = await patch('json', `${maps}/p`, [{ op: 'remove', path: '/data/m' }])
    assert.deepEqual(operations.json().data, { s: '3' })
  })

  it('conflicts only with a stale resourceVersion in the patch', async () => {
    await make('race')
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => patch('merge', `${maps}/race`, { data: { [`k${n}`]: 'v' } })),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.equal(Object.keys((await wire.must('GET', `${maps}/race`)).data).length, 20)
    await refused(patch('merge', `${maps}/race`, { metadata: { resourceVersion: '1' } }), 409, {
      reason: 'Conflict',
      message: /^Operation cannot be fulfilled on configmaps "race": the object has been modified/,
    })
  })

  it('rejects invalid patches', async () => {
    await make('bad', { s: '1' })
    await refused(patch('merge', `${maps}/bad`, '{'), 400, {
      reason: 'BadRequest',
      message: /^error decoding patch: unexpected end of JSON input/,
    })
    await refused(patch('json', `${maps}/bad`, {}), 400, {
      reason: 'BadRequest',
      message: 'error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp',
    })
    for (const operations of [[{ op: 'test', path: '/data/s', value: 'x' }], [{ op: 'remove', path: '/data/none' }]]) {
      await refused(patch('json', `${maps}/bad`, operations), 422, {
        reason: 'Invalid',
        message: 'the server rejected our request due to an error in our request',
        details: {},
      })
    }
    const many = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/data/s', value: '1' }))
    await refused(patch('json', `${maps}/bad`, many), 413, {
      reason: 'RequestEntityTooLarge',
      message: 'Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001',
    })
    await refused(patch('merge', `${maps}/bad`, { data: 5 }), 422, {
      reason: 'Invalid',
      message:
        /^ "" is invalid: patch: Invalid value: "\{\\"apiVersion\\":\\"v1\\",\\"data\\":5,.*": json: cannot unmarshal number into Go struct field ConfigMap\.data of type map\[string\]string$/,
    })
    await refused(patch('strategic', `${maps}/bad?fieldValidation=Strict`, { foo: 1 }), 422, {
      reason: 'Invalid',
      message: ' "" is invalid: patch: Invalid value: "map[foo:1]": strict decoding error: unknown field "foo"',
      details: {
        causes: [
          {
            reason: 'FieldValueInvalid',
            message: 'Invalid value: "map[foo:1]": strict decoding error: unknown field "foo"',
            field: 'patch',
          },
        ],
      },
    })
  })
})

describe('server-side apply of an object', () => {
  const config = (name: string, data: string, extra = ''): string =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: {${data}}\n${extra}`
  const apply = (name: string, query: string, body: unknown): Promise<Got> =>
    patch('apply', `${maps}/${name}?${query}`, body)

  it('responds with 201 for a new object and 200 for a change, from JSON or YAML', async () => {
    assert.equal((await apply('s1', 'fieldManager=m', config('s1', 'k: "1"'))).status, 201)
    const json = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 's1' }, data: { k: '2' } }
    assert.equal((await apply('s1', 'fieldManager=m', json)).status, 200)
    const status = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'none' } }
    await refused(
      patch('apply', `/apis/apps/v1/namespaces/${ns}/deployments/none/status?fieldManager=m`, status),
      404,
      { reason: 'NotFound', message: 'deployments.apps "none" not found' },
    )
  })

  it('checks fieldManager, force, managedFields and unknown fields', async () => {
    const invalid = 'PatchOptions.meta.k8s.io "" is invalid: '
    await refused(apply('s2', '', config('s2', '')), 422, {
      reason: 'Invalid',
      message: `${invalid}fieldManager: Required value: is required for apply patch`,
    })
    await refused(apply('s2', `fieldManager=${'m'.repeat(129)}`, config('s2', '')), 422, {
      reason: 'Invalid',
      message: `${invalid}fieldManager: Too long: may not be more than 128 bytes`,
    })
    await make('forced')
    await refused(patch('merge', `${maps}/forced?force=true`, {}), 422, {
      reason: 'Invalid',
      message: `${invalid}force: Forbidden: may not be specified for non-apply patch`,
    })
    const owned = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s2, managedFields: [{manager: x}]}\n'
    await refused(apply('s2', 'fieldManager=m', owned), 400, {
      reason: 'BadRequest',
      message: 'metadata.managedFields must be nil',
    })
    for (const validation of ['', '&fieldValidation=Ignore', '&fieldValidation=Warn']) {
      const unknown = await apply('s2', `fieldManager=m${validation}`, config('s2', '', 'zork: 1'))
      assert.equal(unknown.status, 500)
      assert.equal(
        unknown.json().message,
        'failed to create typed patch object (/s2; /v1, Kind=ConfigMap): .zork: field not declared in schema',
      )
    }
  })

  it('reports one conflict or several', async () => {
    await apply('c1', 'fieldManager=m1', config('c1', 'k: "1"'))
    await refused(apply('c1', 'fieldManager=m2', config('c1', 'k: "2"')), 409, {
      reason: 'Conflict',
      message: 'Apply failed with 1 conflict: conflict with "m1": .data.k',
      causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "m1"', field: '.data.k' }],
    })
    await wire.must('POST', `${maps}?fieldManager=c1`, { metadata: { name: 'c2' }, data: { a: '1', b: '1' } })
    await wire.must('PATCH', `${maps}/c2?fieldManager=c2`, { data: { c: '1' } }, { headers: PATCHES.merge })
    const { details } = await refused(apply('c2', 'fieldManager=m', config('c2', 'a: "2", b: "2", c: "2"')), 409, {
      reason: 'Conflict',
      message:
        'Apply failed with 3 conflicts: conflicts with "c1" using v1:\n- .data.a\n- .data.b\nconflicts with "c2" using v1:\n- .data.c',
    })
    const fields: string[] = details.causes.map((cause: Json) => cause.field)
    assert.deepEqual(fields.toSorted(), ['.data.a', '.data.b', '.data.c'])
    assert.equal((await apply('c2', 'fieldManager=m&force=true', config('c2', 'a: "2"'))).status, 200)
  })

  it('names the subresource in a conflict with a subresource', async () => {
    const path = `/apis/apps/v1/namespaces/${ns}/deployments`
    const spec = { replicas: 1, selector: { matchLabels: { a: 'b' } }, template: TEMPLATE }
    await wire.must('POST', path, { metadata: { name: 'scaled' }, spec })
    await wire.must(
      'PATCH',
      `${path}/scaled/scale?fieldManager=sc`,
      { spec: { replicas: 3 } },
      { headers: PATCHES.merge },
    )
    const body = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'scaled' },
      spec: { ...spec, replicas: 5 },
    }
    await refused(patch('apply', `${path}/scaled?fieldManager=m`, body), 409, {
      message:
        'Apply failed with 1 conflict: conflict with "sc" with subresource "scale" using apps/v1: .spec.replicas',
    })
  })

  it('gives up fields that the configuration no longer contains', async () => {
    await apply('g', 'fieldManager=m1', config('g', 'k: "1"'))
    const forced = (await apply('g', 'fieldManager=m2&force=true', config('g', 'k: "2", j: "3"'))).json()
    assert.deepEqual(
      forced.metadata.managedFields.map(({ manager, operation }: Json) => [manager, operation]),
      [['m2', 'Apply']],
    )
    assert.deepEqual((await apply('g', 'fieldManager=m2', config('g', 'k: "2"'))).json().data, { k: '2' })
  })

  it('records fields before admission and allocation', async () => {
    const pod = await wire.must('POST', `/api/v1/namespaces/${ns}/pods`, {
      metadata: { name: 'tracked' },
      spec: TEMPLATE.spec,
    })
    const podFields = Object.keys(pod.metadata.managedFields[0].fieldsV1['f:spec'])
    assert.ok(podFields.includes('f:restartPolicy'))
    for (const name of ['f:volumes', 'f:tolerations', 'f:serviceAccountName', 'f:priority']) {
      assert.ok(!podFields.includes(name), name)
    }
    assert.ok(pod.spec.tolerations.length > 0)
    const service = await wire.must('POST', `/api/v1/namespaces/${ns}/services`, {
      metadata: { name: 'tracked' },
      spec: { ports: [{ port: 1 }] },
    })
    assert.ok(service.spec.clusterIP !== '')
    assert.ok(!('f:clusterIP' in service.metadata.managedFields[0].fieldsV1['f:spec']))
    const { metadata } = await wire.must('POST', '/api/v1/namespaces', { metadata: { name: `${ns}-tracked` } })
    assert.ok('f:kubernetes.io/metadata.name' in metadata.managedFields[0].fieldsV1['f:metadata']['f:labels'])
    assert.equal(metadata.managedFields[0].manager, 'wire')
  })

  it('records earlier fields as before-first-apply, and clears managedFields on request', async () => {
    await make('cleared', { k: '1' })
    for (const managedFields of [[], [{}]]) {
      const cleared = await patch('merge', `${maps}/cleared`, { metadata: { managedFields } })
      assert.ok(!('managedFields' in cleared.json().metadata), cleared.text)
    }
    const applied = await apply('cleared', 'fieldManager=m', config('cleared', 'n: "1"'))
    assert.deepEqual(
      applied.json().metadata.managedFields.map(({ manager, operation }: Json) => [manager, operation]),
      [
        ['m', 'Apply'],
        ['before-first-apply', 'Update'],
      ],
    )
  })

  it('records no fields in an update of an object without managedFields', async () => {
    await make('untracked')
    const patched = await patch('merge', `${maps}/untracked`, { data: { a: 'b' } })
    assert.ok(!('managedFields' in patched.json().metadata), patched.text)
  })

  it('merges the oldest entries of more than ten updates', async () => {
    await make('many', { k: '' })
    for (let n = 0; n < 11; n++) {
      await wire.must(
        'PATCH',
        `${maps}/many?fieldManager=u${n}`,
        { data: { [`k${n}`]: '' } },
        { headers: PATCHES.merge },
      )
    }
    const { metadata } = await wire.must('GET', `${maps}/many`)
    const managers: string[] = metadata.managedFields.map(({ manager }: Json) => manager)
    assert.equal(managers.length, 10)
    assert.ok(managers.includes('ancient-changes'), String(managers))
  })
})

describe('options and limits of a write', () => {
  it('return warnings, errors or nothing for unknown and repeated fields', async () => {
    const body = '{"metadata":{"name":"v","foo":1},"data":{"a":"1","a":"2"},"bar":2}'
    const warned = await post(`${maps}?dryRun=All`, body)
    assert.equal(warned.status, 201)
    assert.deepEqual(warned.all('warning'), [
      '299 - "unknown field \\"metadata.foo\\""',
      '299 - "duplicate field \\"data.a\\""',
      '299 - "unknown field \\"bar\\""',
    ])
    await refused(post(`${maps}?fieldValidation=Strict`, body), 400, {
      reason: 'BadRequest',
      message:
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.foo", duplicate field "data.a", unknown field "bar"',
    })
    assert.deepEqual((await post(`${maps}?dryRun=All&fieldValidation=Ignore`, body)).all('warning'), [])
    await refused(post(`${maps}?fieldValidation=Other`, body), 422, {
      reason: 'Invalid',
      message:
        'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Other": supported values: "", "Ignore", "Strict", "Warn"',
    })
    const yaml = 'metadata:\n  name: v\ndata:\n  a: "1"\n  a: "2"\n'
    const doubled = await post(`${maps}?dryRun=All`, yaml, { 'content-type': 'application/yaml' })
    assert.deepEqual(doubled.all('warning'), ['299 - "line 5: key \\"a\\" already set in map"'])
  })

  it('truncate warnings at 4 KiB in total', async () => {
    const unknown = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`${'f'.repeat(300)}${n}`, 1]))
    const warned = await post(`${maps}?dryRun=All`, { metadata: { name: 'w' }, ...unknown })
    const warnings = warned.all('warning')
    assert.ok(warnings.length < 30 && warnings.length > 10, String(warnings.length))
    for (const warning of warnings) assert.ok(warning.length < 300, warning)
  })

  it('return the object of a dry run and store nothing', async () => {
    const made = await post(`${maps}?dryRun=All`, { metadata: { name: 'dry' } })
    assert.equal(made.status, 201)
    const { metadata } = made.json()
    assert.ok(metadata.uid && metadata.creationTimestamp && !('resourceVersion' in metadata))
    assert.equal((await wire.request('GET', `${maps}/dry`)).status, 404)
    const real = await make('real', { k: '1' })
    const before = real.metadata.resourceVersion
    assert.deepEqual(
      (await put(`${maps}/real?dryRun=All`, { metadata: { name: 'real' }, data: { k: '2' } })).json().data,
      { k: '2' },
    )
    assert.deepEqual((await patch('merge', `${maps}/real?dryRun=All`, { data: { k: '3' } })).json().data, { k: '3' })
    assert.equal((await wire.must('DELETE', `${maps}/real?dryRun=All`)).status, 'Success')
    assert.equal((await wire.request('DELETE', `${maps}?dryRun=All`)).status, 200)
    const after = await wire.must('GET', `${maps}/real`)
    assert.deepEqual([after.metadata.resourceVersion, after.data], [before, { k: '1' }])
    await refused(post(`${maps}?dryRun=Some`, { metadata: { name: 'dry' } }), 422, {
      reason: 'Invalid',
      message: 'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
    })
  })

  it('return warnings with refused requests too', async () => {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    const { metadata } = await wire.must('POST', '/api/v1/namespaces', {
      metadata: { generateName: 'strict-', labels },
    })
    await wire.must('POST', `/api/v1/namespaces/${metadata.name}/serviceaccounts`, { metadata: { name: 'default' } })
    const annotations = { 'container.apparmor.security.beta.kubernetes.io/c': 'unconfined' }
    const got = await post(`/api/v1/namespaces/${metadata.name}/pods`, {
      metadata: { name: 'p', annotations },
      spec: { ...TEMPLATE.spec, volumes: [{ name: 'v', gitRepo: { repository: 'r' } }] },
    })
    assert.equal(got.status, 403, got.text)
    assert.match(got.json().message, /violates PodSecurity "restricted:latest"/)
    assert.deepEqual(got.all('warning'), [
      '299 - "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the \\"appArmorProfile\\" field instead"',
      '299 - "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"',
    ])
  })

  it('restrict the size of bodies, data and annotations', async () => {
    const large = `{"data":{"a":"${'x'.repeat(3 * 1024 * 1024)}"}}`
    await refused(post(maps, large), 413, {
      reason: 'RequestEntityTooLarge',
      message: 'Request entity too large: limit is 3145728',
    })
    await refused(post(maps, { metadata: { name: 'big' }, data: { a: 'x'.repeat(1024 * 1024 + 1) } }), 422, {
      reason: 'Invalid',
      message: 'ConfigMap "big" is invalid: []: Too long: may not be more than 1048576 bytes',
      causes: [{ reason: 'FieldValueTooLong', message: 'Too long: may not be more than 1048576 bytes', field: '[]' }],
    })
    const annotations = { a: 'x'.repeat(262_144) }
    await refused(post(maps, { metadata: { name: 'big', annotations } }), 422, {
      reason: 'Invalid',
      message: 'ConfigMap "big" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes',
    })
  })

  it('reject objects too large for etcd with its error text on every store', async () => {
    const pods = `/api/v1/namespaces/${ns}/pods`
    const pod = (bytes: number): object => ({
      metadata: { name: 'big' },
      spec: { containers: [{ name: 'c', image: 'i', args: ['x'.repeat(bytes)] }] },
    })
    await refused(post(pods, pod(1_600_000)), 500, { reason: undefined, message: 'etcdserver: request is too large' })
    const unsent =
      /^rpc error: code = ResourceExhausted desc = trying to send message larger than max \(\d+ vs\. 2097152\)$/
    await refused(post(pods, pod(2_200_000)), 500, { reason: undefined, message: unsent })
  })
})
