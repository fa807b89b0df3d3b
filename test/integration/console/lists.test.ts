/** Tests lists, the palette and lost connections in a real browser, on a cluster with simulated nodes. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { ConfigMaps, Namespaces, Pods } from '#apis/core/v1.ts'
import { defineKind } from '#client/custom-kind.ts'
import { eventually } from '#kits/lib/eventually.ts'
import type { KubeObject } from '#meta/object.ts'
import { isResourceExpired } from '#meta/status.ts'

import { type BrowserBed, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

const MARKUP = '<img src=x onerror="alert(1)">'
/** The store forgets older changes, so that watches from their versions get 410. */
const HISTORY_MS = 2000

const Gadgets = defineKind({ group: 'example.com', version: 'v1', kind: 'Gadget', plural: 'gadgets' })
const GADGETS = {
  metadata: { name: 'gadgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}

describe('lists of the console', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  before(async () => {
    bed = await startBrowserBed({ nodes: 1, serverSettings: { 'etcd-compaction-interval': HISTORY_MS } })
    const { client } = bed.cluster
    await client.create(Namespaces, { metadata: { name: 'shop' } })
    for (const name of ['web-1', 'web-2', 'api-1']) {
      await client.create(Pods, {
        metadata: { name, namespace: 'shop', labels: { app: name.slice(0, 3) } },
        spec: { containers: [{ name: 'app', image: 'shop' }] },
      } as never)
    }
  })
  after(() => bed?.[Symbol.asyncDispose]())

  /** Whether a watch from this version gets 410. */
  async function isForgotten(resourceVersion: string): Promise<boolean> {
    const watch = bed.cluster.client.watch(ConfigMaps, { namespace: 'shop', resourceVersion, timeoutSeconds: 1 })
    try {
      for await (const _ of watch) return false
      return false
    } catch (error) {
      if (isResourceExpired(error)) return true
      throw error
    }
  }

  it('show the columns of kubectl, and new and deleted objects at once', async () => {
    const { page, cluster } = bed
    await bed.open('/core/v1/pods')
    await page.getByRole('link', { name: 'web-1' }).waitFor()
    await page.getByRole('columnheader', { name: 'Restarts' }).waitFor()
    await cluster.client.create(Pods, {
      metadata: { name: 'late', namespace: 'shop' },
      spec: { containers: [{ name: 'app', image: 'shop' }] },
    } as never)
    await page.getByRole('link', { name: 'late' }).waitFor()
    await cluster.client.delete(Pods, { namespace: 'shop', name: 'late' }, { gracePeriodSeconds: 0 })
    await page.getByRole('link', { name: 'late' }).waitFor({ state: 'detached' })
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
  })

  it('filter and sort, with the state in the address', async () => {
    const { page } = bed
    await page.getByRole('searchbox').fill('app=web -web-2')
    await page.getByText('1 of 3').waitFor()
    await page.reload()
    await page.getByText('1 of 3').waitFor()
    await page.getByRole('searchbox').fill('nothing fits')
    await page.getByRole('button', { name: 'Clear the filter' }).click()
    await page.getByRole('button', { name: 'Name', exact: true }).click()
    await page.getByRole('button', { name: 'Name', exact: true }).click()
    await page.locator('th[aria-sort=descending]').waitFor()
    const names = await page.locator('.cell-name').allTextContents()
    assert.deepEqual(names, ['web-2', 'web-1', 'api-1'])
  })

  it('open by keyboard alone', async () => {
    const { page } = bed
    await bed.open('')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill('po shop')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'api-1' }).waitFor()
    assert.match(page.url(), /pods\?ns=shop$/)
    await page.getByRole('region', { name: 'Objects' }).focus()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'api-1' }).waitFor()
  })

  it('say that the connection is lost, and recover by themselves', async () => {
    const { page, cluster } = bed
    await bed.open('/core/v1/configmaps?ns=shop')
    await page.getByRole('link', { name: 'kube-root-ca.crt' }).waitFor()
    await page.context().setOffline(true)
    bed.dropConnections()
    await page.getByText('Reconnecting').waitFor()
    await cluster.client.create(ConfigMaps, { metadata: { name: 'meanwhile', namespace: 'shop' } })
    await page.context().setOffline(false)
    await page.getByRole('link', { name: 'meanwhile' }).waitFor()
    await page.locator('.state-live').waitFor()
  })

  it('list again when the server no longer has the changes since the connection was lost', async () => {
    const { page, cluster } = bed
    const { client } = cluster
    const namespace = 'shop'
    for (const name of ['stays', 'goes']) await client.create(ConfigMaps, { metadata: { name, namespace } })
    await bed.open('/core/v1/configmaps?ns=shop')
    await page.getByRole('link', { name: 'goes' }).waitFor()
    await page.locator('.state-live').waitFor()
    await page.getByRole('searchbox').pressSequentially('-root')
    await page.getByRole('link', { name: 'kube-root-ca.crt' }).waitFor({ state: 'detached' })
    await page.context().setOffline(true)
    bed.dropConnections()
    await page.getByText('Reconnecting').waitFor()
    await client.delete(ConfigMaps, { namespace, name: 'goes' })
    const { metadata } = await client.create(ConfigMaps, { metadata: { name: 'comes', namespace } })
    await client.update(ConfigMaps, { metadata: { name: 'stays', namespace, labels: { is: 'changed' } } })
    await eventually(
      () => isForgotten(metadata.resourceVersion ?? ''),
      (forgotten) => forgotten,
    )
    await page.context().setOffline(false)
    await page.getByRole('link', { name: 'comes' }).waitFor()
    await page.getByRole('link', { name: 'goes' }).waitFor({ state: 'detached' })
    await page.locator('.state-live').waitFor()
    assert.equal(await page.getByRole('searchbox').inputValue(), '-root')
    await page.getByRole('searchbox').fill('is=changed')
    await page.getByRole('link', { name: 'stays' }).waitFor()
    await client.create(ConfigMaps, { metadata: { name: 'later', namespace, labels: { is: 'changed' } } })
    await page.getByRole('link', { name: 'later' }).waitFor()
  })

  it('list again, without a word, when the server refuses a watch with 410', async () => {
    const { page, cluster } = bed
    const aim = { verb: 'watch', resource: 'configmaps', namespace: 'shop' } as const
    cluster.inject({ type: 'api-error', ...aim, code: 410, reason: 'Expired', times: 1 })
    let lists = 0
    page.on('response', (response) => {
      if (/\/configmaps\?limit=/.test(response.url())) lists++
    })
    cluster.inject({ type: 'watch-cut', resource: 'configmaps', namespace: 'shop' })()
    await eventually(
      () => lists,
      (count) => count > 0,
    )
    await cluster.client.create(ConfigMaps, {
      metadata: { name: 'afterwards', namespace: 'shop', labels: { is: 'changed' } },
    })
    await page.getByRole('link', { name: 'afterwards' }).waitFor()
    assert.equal(await page.getByRole('searchbox').inputValue(), 'is=changed')
  })

  it('begin and end with their kind', async () => {
    const { page, cluster } = bed
    const link = page.getByRole('navigation', { name: 'Kinds' }).getByRole('link', { name: 'Gadgets' })
    await bed.open('/example.com/v1/gadgets')
    await page.getByText('The server refused the list of gadgets').waitFor()
    assert.equal(await link.count(), 0)
    const definition = await cluster.client.create(CustomResourceDefinitions, GADGETS)
    await link.waitFor()
    await page.getByText('There are no gadgets').waitFor()
    const metadata = { name: 'one', namespace: 'shop' }
    await cluster.client.create(Gadgets, { metadata, spec: { size: 7 } } as KubeObject)
    await page.getByRole('columnheader', { name: 'Size' }).waitFor()
    await page.getByRole('cell', { name: '7', exact: true }).waitFor()
    await cluster.client.delete(CustomResourceDefinitions, { name: definition.metadata.name ?? '' })
    await link.waitFor({ state: 'detached' })
  })

  it('draw markup in objects as text', async () => {
    const { page, cluster } = bed
    await cluster.client.create(ConfigMaps, {
      metadata: { name: 'hostile', namespace: 'shop', labels: { tier: 'x' }, annotations: { note: MARKUP } },
      data: { 'page.html': MARKUP },
    })
    await bed.open('/core/v1/configmaps/shop/hostile')
    await page.getByText(MARKUP).first().waitFor()
    assert.deepEqual(bed.troubles, [])
  })
})
