/** The API on the wire, as captured from upstream: numbers are items of the wire checklist. ConfigMaps stand for all. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type ControlPlane, type ControlPlaneResponse, startControlPlane } from '#testing/control-plane.ts'

interface Obj {
  kind?: string
  metadata: Record<string, unknown> & {
    managedFields?: { manager: string; operation: string; fieldsV1: object; time: string }[]
  }
  data?: Record<string, string>
  items?: Obj[]
  message?: string
  reason?: string
  details?: Record<string, unknown>
  code?: number
}

let plane: ControlPlane
before(async () => {
  plane = await startControlPlane()
})
after(() => plane.stop())

const NS = '/api/v1/namespaces'
const path = (namespace: string, name = ''): string => `${NS}/${namespace}/configmaps${name === '' ? '' : `/${name}`}`
const object = (answer: ControlPlaneResponse): Obj => answer.json() as unknown as Obj
const create = async (
  namespace: string,
  name: string,
  data: Record<string, string> = {},
  more: object = {},
): Promise<Obj> => {
  const answer = await plane.request('POST', path(namespace), { metadata: { name, ...more }, data })
  assert.equal(answer.status, 201, answer.text)
  return object(answer)
}
const PATCHES = {
  json: { 'content-type': 'application/json-patch+json' },
  merge: { 'content-type': 'application/merge-patch+json' },
  strategic: { 'content-type': 'application/strategic-merge-patch+json' },
  apply: { 'content-type': 'application/apply-patch+yaml' },
}
const failure = async (answer: Promise<ControlPlaneResponse>, code: number, message: RegExp | string): Promise<Obj> => {
  const { status, text } = await answer
  assert.equal(status, code, text)
  const body = JSON.parse(text) as Obj
  if (typeof message === 'string') assert.equal(body.message, message)
  else assert.match(body.message ?? '', message)
  return body
}

/** The events of a watch that ends by itself. */
async function watch(query: string, headers: Record<string, string> = {}): Promise<{ type: string; object: Obj }[]> {
  const answer = await plane.request('GET', `${path('watched')}?watch=1&timeoutSeconds=1&${query}`, undefined, headers)
  assert.equal(answer.status, 200, answer.text)
  return answer.text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { type: string; object: Obj })
}

describe('reading', () => {
  it('4: items of a list carry no kind, objects do; an empty list is []', async () => {
    await create('read4', 'a')
    const list = await plane.request('GET', path('read4'))
    assert.match(
      list.text,
      /^\{"kind":"ConfigMapList","apiVersion":"v1","metadata":\{"resourceVersion":"\d+"\},"items":\[\{"metadata":\{"name":"a"/,
    )
    assert.match(
      (await plane.request('GET', path('read4', 'a'))).text,
      /^\{"kind":"ConfigMap","apiVersion":"v1","metadata":\{"name":"a"/,
    )
    assert.match((await plane.request('GET', path('empty'))).text, /"items":\[\]\}\n$/)
  })

  it('6, 8: the first acceptable form wins; errors obey Accept; nothing acceptable is 406', async () => {
    await create('read6', 'a')
    const yaml = await plane.request('GET', path('read6', 'a'), undefined, { accept: 'application/yaml' })
    assert.match(yaml.text, /^apiVersion: v1\nkind: ConfigMap\n/)
    const missing = await plane.request('GET', path('read6', 'nope'), undefined, { accept: 'application/yaml' })
    assert.match(missing.text, /message: configmaps "nope" not found/)
    const protobuf = await plane.request('GET', path('read6', 'nope'), undefined, {
      accept: 'application/vnd.kubernetes.protobuf',
    })
    assert.ok(protobuf.text.startsWith('k8s\0'))
    const refused = await plane.request('GET', path('read6', 'a'), undefined, { accept: 'application/cbor' })
    assert.equal(refused.status, 406)
    assert.match(refused.text, /^\{\n {2}"kind": "Status"/)
  })

  it('8: unknown groups and paths are plain text, unknown resources a Status without details', async () => {
    for (const unknown of ['/apis/nope.io/v1/things', '/foo']) {
      const answer = await plane.request('GET', unknown)
      assert.deepEqual([answer.status, answer.text], [404, '404 page not found\n'])
    }
    const body = await failure(
      plane.request('GET', '/api/v1/nopes'),
      404,
      'the server could not find the requested resource',
    )
    assert.deepEqual(body.details, {})
  })

  it('12: people get indented JSON', async () => {
    await create('read12', 'a')
    for (const [query, agent] of [
      ['?pretty=true', 'x'],
      ['', 'curl/8'],
      ['', 'Mozilla/5.0 (x)'],
    ]) {
      assert.match(
        (await plane.request('GET', path('read12', 'a') + query, undefined, { 'user-agent': agent ?? '' })).text,
        /^\{\n {2}"kind"/,
      )
    }
    assert.match(
      (await plane.request('GET', `${path('read12', 'a')}?pretty=false`, undefined, { 'user-agent': 'curl/8' })).text,
      /^\{"kind"/,
    )
  })

  it('13, 15: pages keep the first revision; a limit with resourceVersion=0 is ignored; remaining items are counted', async () => {
    for (const name of ['a', 'b', 'c']) await create('read15', name, {}, { labels: { l: 'x' } })
    const first = object(await plane.request('GET', `${path('read15')}?limit=2`))
    assert.deepEqual([first.items?.length, first.metadata['remainingItemCount']], [2, 1])
    await create('read15', 'd')
    const token = encodeURIComponent(String(first.metadata['continue']))
    const second = object(await plane.request('GET', `${path('read15')}?limit=2&continue=${token}`))
    assert.deepEqual(
      second.items?.map(({ metadata }) => metadata['name']),
      ['c'],
    )
    assert.equal(second.metadata['resourceVersion'], first.metadata['resourceVersion'])
    assert.equal(object(await plane.request('GET', `${path('read15')}?limit=2&resourceVersion=0`)).items?.length, 4)
    assert.equal(
      object(await plane.request('GET', `${path('read15')}?limit=1&labelSelector=l%3Dx`)).metadata[
        'remainingItemCount'
      ],
      undefined,
    )
    await failure(
      plane.request('GET', `${path('read15')}?continue=${token}&resourceVersion=5`),
      400,
      'specifying resource version is not allowed when using continue',
    )
    await failure(plane.request('GET', `${path('read15')}?continue=%25%25`), 400, /^invalid continue token/)
    const exact = object(
      await plane.request(
        'GET',
        `${path('read15')}?resourceVersion=${String(first.metadata['resourceVersion'])}&resourceVersionMatch=Exact`,
      ),
    )
    assert.equal(exact.items?.length, 3)
  })

  it('17, 18: selectors and limits that cannot be read are 400', async () => {
    await failure(plane.request('GET', `${path('x')}?labelSelector=a%20b`), 400, /^unable to parse requirement: /)
    await failure(
      plane.request('GET', `${path('x')}?fieldSelector=spec.x%3Dy`),
      400,
      '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
    )
    await failure(
      plane.request('GET', `${path('x')}?limit=abc`),
      400,
      'strconv.ParseInt: parsing "abc": invalid syntax',
    )
    assert.equal((await plane.request('GET', `${path('x')}?limit=-1&unknown=1`)).status, 200)
  })

  it('19: tables', async () => {
    await create('read19', 'a', { k: 'v' })
    const table = (query = ''): Promise<ControlPlaneResponse> =>
      plane.request('GET', `${path('read19')}${query}`, undefined, {
        accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
      })
    const body = (await table()).json() as {
      rows: { cells: unknown[]; object: Obj }[]
      columnDefinitions: { name: string }[]
    }
    assert.deepEqual(
      body.columnDefinitions.map(({ name }) => name),
      ['Name', 'Data', 'Age'],
    )
    assert.deepEqual(body.rows[0]?.cells.slice(0, 2), ['a', 1])
    assert.equal(body.rows[0]?.object.kind, 'PartialObjectMetadata')
    assert.equal(
      ((await table('?includeObject=None')).json() as { rows: { object?: Obj }[] }).rows[0]?.object,
      undefined,
    )
  })
})

describe('watching', () => {
  it('21-23: begins with what is there, ends the initial events with a bookmark, tells deletions with their revision', async () => {
    const made = await create('watched', 'a', { k: '1' }, { labels: { color: 'red' } })
    const version = String(made.metadata['resourceVersion'])
    await plane.request('PATCH', path('watched', 'a'), { metadata: { labels: { color: 'blue' } } }, PATCHES.merge)
    const gone = await plane.request('DELETE', path('watched', 'a'))
    assert.equal(gone.status, 200)
    const all = await watch(`resourceVersion=${version}`)
    assert.deepEqual(
      all.map(({ type }) => type),
      ['MODIFIED', 'DELETED'],
    )
    assert.equal(all[1]?.object.metadata['resourceVersion'], String(Number(version) + 2))
    const red = await watch(`resourceVersion=${version}&labelSelector=color%3Dred`)
    assert.deepEqual(
      red.map(({ type }) => type),
      ['DELETED'],
    )
    assert.deepEqual(
      [
        red[0]?.object.metadata['resourceVersion'],
        (red[0]?.object.metadata['labels'] as { color: string } | undefined)?.color,
      ],
      [String(Number(version) + 1), 'red'],
    )
    await create('watched', 'b')
    const list = await watch('sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true')
    assert.deepEqual(
      list.map(({ type }) => type),
      ['ADDED', 'BOOKMARK'],
    )
    assert.deepEqual(list[1]?.object.metadata['annotations'], { 'k8s.io/initial-events-end': 'true' })
    assert.deepEqual(
      (await watch('')).map(({ type }) => type),
      ['ADDED'],
    )
  })

  it('20, 22: YAML has no stream, and sendInitialEvents needs its match', async () => {
    assert.equal(
      (await plane.request('GET', `${path('watched')}?watch=1`, undefined, { accept: 'application/yaml' })).status,
      406,
    )
    await failure(
      plane.request('GET', `${path('watched')}?watch=1&sendInitialEvents=true`),
      422,
      /sendInitialEvents requires setting resourceVersionMatch to NotOlderThan/,
    )
  })

  it('26: a table watch sends its columns once', async () => {
    await create('watched', 'c')
    const events = (await watch('', { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' })) as unknown as {
      object: { columnDefinitions: unknown[] | null }
    }[]
    assert.deepEqual(
      events.map(({ object: { columnDefinitions } }) => columnDefinitions?.length),
      [3, undefined],
    )
  })
})

describe('writing', () => {
  it('28, 29: create, twice, elsewhere, with a version, with a generated name', async () => {
    await create('write28', 'a')
    await failure(
      plane.request('POST', path('write28'), { metadata: { name: 'a' } }),
      409,
      'configmaps "a" already exists',
    )
    await failure(
      plane.request('POST', path('write28'), { metadata: { name: 'b', namespace: 'other' } }),
      400,
      'the namespace of the provided object does not match the namespace sent on the request',
    )
    await failure(
      plane.request('POST', path('write28'), { metadata: { name: 'b', resourceVersion: '1' } }),
      500,
      'resourceVersion should not be set on objects to be created',
    )
    await failure(plane.request('POST', path('write28'), { data: {} }), 422, /name or generateName is required/)
    const drawn = object(await plane.request('POST', path('write28'), { metadata: { generateName: 'x-' } }))
    assert.match(String(drawn.metadata['name']), /^x-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
  })

  it('30, 31: update by version, without one, with a stale one; nothing changed is no write', async () => {
    const first = await create('write30', 'a', { k: '1' })
    await failure(
      plane.request('PUT', path('write30', 'a'), { metadata: { name: 'b' } }),
      400,
      /does not match the name on the URL/,
    )
    const second = object(
      await plane.request('PUT', path('write30', 'a'), { metadata: { name: 'a' }, data: { k: '2' } }),
    )
    assert.notEqual(second.metadata['resourceVersion'], first.metadata['resourceVersion'])
    await failure(
      plane.request('PUT', path('write30', 'a'), {
        metadata: { name: 'a', resourceVersion: first.metadata['resourceVersion'] },
      }),
      409,
      'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
    )
    await failure(
      plane.request('PUT', path('write30', 'a'), { metadata: { name: 'a', uid: 'other' } }),
      409,
      /Precondition failed: UID in precondition: other/,
    )
    const same = object(await plane.request('PUT', path('write30', 'a'), { metadata: { name: 'a' }, data: { k: '2' } }))
    assert.equal(same.metadata['resourceVersion'], second.metadata['resourceVersion'])
    await failure(
      plane.request('PUT', path('write30', 'nope'), { metadata: { name: 'nope' } }),
      404,
      'configmaps "nope" not found',
    )
  })

  it('33: patches in three languages', async () => {
    await create('write33', 'a', { k: '1' })
    const patched = object(
      await plane.request('PATCH', path('write33', 'a'), { data: { m: '2', k: null } }, PATCHES.merge),
    )
    assert.deepEqual(patched.data, { m: '2' })
    assert.deepEqual(
      object(await plane.request('PATCH', path('write33', 'a'), { data: { s: '3' } }, PATCHES.strategic)).data,
      { m: '2', s: '3' },
    )
    assert.deepEqual(
      object(await plane.request('PATCH', path('write33', 'a'), [{ op: 'remove', path: '/data/m' }], PATCHES.json))
        .data,
      { s: '3' },
    )
    await failure(
      plane.request('PATCH', `${path('write33', 'a')}?fieldValidation=Strict`, { foo: 1 }, PATCHES.strategic),
      422,
      'ConfigMap "a" is invalid: patch: Invalid value: "map[foo:1]": strict decoding error: unknown field "foo"',
    )
    await failure(plane.request('PATCH', path('write33', 'a'), '{', PATCHES.merge), 400, /^error decoding patch: /)
    await failure(
      plane.request('PATCH', path('write33', 'a'), [{ op: 'test', path: '/data/s', value: 'x' }], PATCHES.json),
      422,
      'the server rejected our request due to an error in our request',
    )
    await failure(
      plane.request('PATCH', path('write33', 'a'), {}, { 'content-type': 'text/plain' }),
      415,
      '415: Unsupported Media Type',
    )
    await failure(
      plane.request('PATCH', `${path('write33', 'a')}?force=true`, {}, PATCHES.merge),
      422,
      /may not be specified for non-apply patch/,
    )
    await failure(
      plane.request('PATCH', path('write33', 'a'), { metadata: { resourceVersion: '1' } }, PATCHES.merge),
      409,
      /the object has been modified/,
    )
  })

  it('34-36: apply creates, conflicts, takes over by force, gives up what it no longer mentions', async () => {
    const config = (data: string, extra = ''): string =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {${data}}\n${extra}`
    const apply = (manager: string, body: string, more = ''): Promise<ControlPlaneResponse> =>
      plane.request('PATCH', `${path('write34', 'a')}?fieldManager=${manager}${more}`, body, PATCHES.apply)
    assert.equal((await apply('m1', config('k: "1"'))).status, 201)
    await failure(apply('m2', config('k: "2"')), 409, 'Apply failed with 1 conflict: conflict with "m1": .data.k')
    const forced = object(await apply('m2', config('k: "2", j: "3"'), '&force=true'))
    assert.deepEqual(
      forced.metadata.managedFields?.map(({ manager, operation }) => [manager, operation]),
      [['m2', 'Apply']],
    )
    assert.deepEqual(object(await apply('m2', config('k: "2"'))).data, { k: '2' })
    await failure(
      plane.request('PATCH', path('write34', 'a'), config(''), PATCHES.apply),
      422,
      /is required for apply patch/,
    )
    await failure(
      apply('m1', config('k: "1"', 'zork: 1')),
      500,
      'failed to create typed patch object (/a; /v1, Kind=ConfigMap): .zork: field not declared in schema',
    )
    await failure(apply('m1', 'metadata: {name: a}'), 400, 'invalid object type: /, Kind=ConfigMap')
  })

  it('37: unknown and repeated fields are warned of, refused or ignored', async () => {
    const body = '{"metadata":{"name":"a","foo":1},"data":{"a":"1","a":"2"},"bar":2}'
    const warned = await plane.request('POST', `${path('write37')}?dryRun=All`, body)
    assert.equal(warned.status, 201)
    assert.equal(
      warned.headers.get('warning'),
      '299 - "unknown field \\"metadata.foo\\"", 299 - "duplicate field \\"data.a\\"", 299 - "unknown field \\"bar\\""',
    )
    await failure(
      plane.request('POST', `${path('write37')}?fieldValidation=Strict`, body),
      400,
      /strict decoding error: unknown field "metadata.foo", duplicate field "data.a", unknown field "bar"/,
    )
    assert.equal(
      (await plane.request('POST', `${path('write37')}?fieldValidation=Ignore`, body)).headers.get('warning'),
      null,
    )
    await failure(plane.request('POST', `${path('write37')}?fieldValidation=Other`, body), 422, /fieldValidation/)
  })

  it('38: a dry run answers in full and stores nothing', async () => {
    const before = object(await plane.request('GET', path('write38'))).metadata['resourceVersion']
    const made = object(await plane.request('POST', `${path('write38')}?dryRun=All`, { metadata: { name: 'a' } }))
    assert.ok(made.metadata['uid'])
    assert.equal((await plane.request('GET', path('write38', 'a'))).status, 404)
    assert.equal(object(await plane.request('GET', path('write38'))).metadata['resourceVersion'], before)
    await failure(plane.request('POST', `${path('write38')}?dryRun=Some`, { metadata: { name: 'a' } }), 422, /dryRun/)
  })

  it('39: bodies and data have limits', async () => {
    await failure(
      plane.request('POST', path('write39'), `{"data":{"a":"${'x'.repeat(3 * 1024 * 1024)}"}}`),
      413,
      'Request entity too large: limit is 3145728',
    )
    const body = await failure(
      plane.request('POST', path('write39'), { metadata: { name: 'a' }, data: { a: 'x'.repeat(1024 * 1024 + 1) } }),
      422,
      /Too long: may not be more than 1048576 bytes/,
    )
    assert.equal((body.details?.['causes'] as { field: string }[] | undefined)?.[0]?.field, '[]')
  })
})

describe('deleting', () => {
  it('40, 43: answers with a Status that has no code; preconditions must hold', async () => {
    const { metadata } = await create('delete40', 'a')
    await failure(
      plane.request('DELETE', path('delete40', 'a'), { preconditions: { uid: 'zz' } }),
      409,
      `Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (zz) does not match the UID in record (${String(metadata['uid'])}). The object might have been deleted and then recreated`,
    )
    const gone = object(await plane.request('DELETE', path('delete40', 'a'), { propagationPolicy: 'Background' }))
    assert.deepEqual(gone, {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: 'a', kind: 'configmaps', uid: metadata['uid'] },
    })
    await failure(plane.request('DELETE', path('delete40', 'a')), 404, 'configmaps "a" not found')
    await failure(
      plane.request('DELETE', path('delete40', 'a'), { propagationPolicy: 'Nope' }),
      422,
      /propagationPolicy/,
    )
  })

  it('41: finalizers hold it, the last one lets it go', async () => {
    await create('delete41', 'a', {}, { finalizers: ['x.io/f'] })
    const marked = object(await plane.request('DELETE', path('delete41', 'a')))
    assert.equal(marked.metadata['deletionGracePeriodSeconds'], 0)
    const again = object(await plane.request('DELETE', path('delete41', 'a')))
    assert.equal(again.metadata['resourceVersion'], marked.metadata['resourceVersion'])
    await failure(
      plane.request('PATCH', path('delete41', 'a'), { metadata: { finalizers: ['x.io/f', 'y.io/f'] } }, PATCHES.merge),
      422,
      /no new finalizers can be added if the object is being deleted, found new finalizers \[\]string\{"y\.io\/f"\}/,
    )
    const last = await plane.request('PATCH', path('delete41', 'a'), { metadata: { finalizers: null } }, PATCHES.merge)
    assert.equal(last.status, 200)
    assert.equal((await plane.request('GET', path('delete41', 'a'))).status, 404)
  })

  it('deletes a selection and answers with its list', async () => {
    for (const name of ['a', 'b', 'c'])
      await create('deletemany', name, {}, { labels: { l: name === 'c' ? 'keep' : 'drop' } })
    const gone = object(await plane.request('DELETE', `${path('deletemany')}?labelSelector=l%3Ddrop`))
    assert.deepEqual(
      gone.items?.map(({ metadata }) => metadata['name']),
      ['a', 'b'],
    )
    assert.deepEqual(
      object(await plane.request('GET', path('deletemany'))).items?.map(({ metadata }) => metadata['name']),
      ['c'],
    )
  })
})
