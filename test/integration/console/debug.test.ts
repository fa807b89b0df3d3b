/** Tests debug containers of pods and debug pods of nodes in a real browser, on simulated nodes. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Pods } from '#apis/core/v1.ts'
import { RoleBindings } from '#apis/rbac/v1.ts'
import { eventually } from '#kits/lib/eventually.ts'

import { type BrowserBed, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

describe('debug containers in the browser', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  before(async () => {
    bed = await startBrowserBed({ nodes: 1 })
    const { client } = bed.cluster
    await client.create(Pods, {
      metadata: { name: 'web', namespace: 'default' },
      spec: { containers: [{ name: 'app', image: 'shop' }] },
    } as never)
    await client.create(RoleBindings, {
      metadata: { name: 'readers', namespace: 'default' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'User', name: 'ada', apiGroup: 'rbac.authorization.k8s.io' }],
    })
  })
  after(() => bed?.[Symbol.asyncDispose]())

  async function checkAccess(): Promise<void> {
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
  }

  it('are added to a pod, and their shell opens', async () => {
    const { page, cluster } = bed
    await bed.open('/core/v1/pods/default/web')
    await page.getByRole('button', { name: 'Debug' }).click()
    await page.getByText('its entry stays until the pod is deleted').waitFor()
    await checkAccess()
    await page.getByLabel('Image').fill('two words')
    await page.getByRole('button', { name: 'Add and open a shell' }).click()
    await page.getByRole('alert').getByText('"two words" is not an image').waitFor()
    await page.getByLabel('Image').fill('alpine')
    await page.getByRole('button', { name: 'Add and open a shell' }).click()
    await page.getByRole('combobox', { name: 'Container' }).waitFor()
    const { spec } = await cluster.client.get(Pods, { namespace: 'default', name: 'web' })
    const [added] = spec.ephemeralContainers ?? []
    assert.deepEqual([added?.image, added?.targetContainerName], ['alpine', 'app'])
    const chosen = (name: string): Promise<string> => page.getByRole('combobox', { name }).inputValue()
    await eventually(
      async () => [await chosen('Container'), await chosen('What to connect to')],
      ([container, what]) => container === added?.name && what === 'attach',
    )
    await checkAccess()
  })

  it('are pods on a node, with a warning of what they may', async () => {
    const { page, cluster } = bed
    await bed.open('/core/v1/nodes/_/node-0')
    await page.getByRole('button', { name: 'Debug' }).click()
    await page.getByText('all files of the node at /host').waitFor()
    await checkAccess()
    await page.getByRole('button', { name: 'Create and open a shell' }).click()
    await page.getByRole('heading', { name: /^node-debugger-node-0-/ }).waitFor()
    const { items } = await cluster.client.list(Pods, { namespace: 'default' })
    const made = items.find(({ metadata }) => metadata.name?.startsWith('node-debugger-'))
    assert.deepEqual([made?.spec.nodeName, made?.spec.hostPID], ['node-0', true])
  })

  it('are offered only to users who may', async () => {
    const page = await bed.openAs('ada', '/core/v1/pods/default/web')
    await page.getByRole('heading', { name: 'Container app' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Debug' }).count(), 0)
  })

  it('ran no foreign script and broke no rule of the Content-Security-Policy', () => {
    assert.deepEqual(bed.troubles, [])
  })
})
