/**
 * Tests stored values that cannot be decoded: reading them fails with a clear error, and other requests are not
 * affected.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
const FOOS = '/apis/ex.io/v1/namespaces/default/foos'

let plane: ControlPlane

before(async () => {
  plane = await startControlPlane()
})

after(() => plane.stop())

/** Writes to the store directly, without the API server. */
async function put(key: string, text: string | null): Promise<void> {
  const { backend } = plane.running.server.registry.services
  await backend.commit([{ key: `/registry/${key}`, value: text === null ? null : Buffer.from(text) }])
}

const get = async (path: string): Promise<number> => (await plane.request('GET', path)).status

describe('stored value that cannot be decoded', () => {
  it('fails only reads of its object and of its list', async () => {
    await put('configmaps/default/broken', '{"kind":"ConfigMap","metada')
    assert.deepEqual(await Promise.all([get(`${CONFIG_MAPS}/broken`), get(CONFIG_MAPS)]), [500, 500])
    assert.deepEqual(
      await Promise.all([
        get(`${CONFIG_MAPS}/kube-root-ca.crt`),
        get('/api/v1/namespaces/kube-system/configmaps'),
        get('/api/v1/namespaces/default/secrets'),
      ]),
      [200, 200, 200],
    )
    const made = { metadata: { name: 'after' } }
    assert.equal((await plane.request('POST', CONFIG_MAPS, made)).status, 201)
    assert.equal(await get(`${CONFIG_MAPS}/after`), 200)
  })

  it('is not reported as a difference between cache and store', async () => {
    assert.deepEqual(await plane.running.server.registry.services.cache.check(), [])
  })

  it('has no effect after its deletion', async () => {
    await put('configmaps/default/broken', null)
    assert.deepEqual(await Promise.all([get(`${CONFIG_MAPS}/broken`), get(CONFIG_MAPS)]), [404, 200])
  })
})

describe('custom resource with metadata fields of wrong types', () => {
  it('is returned without these fields, and can be deleted', async () => {
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'foos.ex.io' },
      spec: {
        group: 'ex.io',
        scope: 'Namespaced',
        names: { plural: 'foos', kind: 'Foo' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    }
    await plane.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
    while ((await get(FOOS)) !== 200) await new Promise((resolve) => setImmediate(resolve))
    const metadata = {
      name: 'odd',
      namespace: 'default',
      unknown: 42,
      generation: null,
      annotations: { a: 1 },
      labels: { l: 'x' },
    }
    await put('ex.io/foos/default/odd', JSON.stringify({ apiVersion: 'ex.io/v1', kind: 'Foo', metadata }))
    const { metadata: shown } = (await plane.request('GET', `${FOOS}/odd`)).json() as { metadata: object }
    assert.deepEqual(
      { ...shown, resourceVersion: '' },
      {
        resourceVersion: '',
        name: 'odd',
        namespace: 'default',
        generation: 1,
        labels: { l: 'x' },
      },
    )
    assert.equal((await plane.request('DELETE', `${FOOS}/odd`)).status, 200)
  })
})
