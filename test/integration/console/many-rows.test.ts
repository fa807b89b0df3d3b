/** Tests the choices of a list and actions on many rows in a real browser, with the keyboard and with the mouse. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { ConfigMaps, Namespaces } from '#apis/core/v1.ts'
import { Roles, RoleBindings } from '#apis/rbac/v1.ts'

import { type BrowserBed, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

const NAMESPACES = ['red', 'blue']
const EACH = 30

describe('many rows of a list', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  before(async () => {
    bed = await startBrowserBed({ nodes: 3 })
    const { client } = bed.cluster
    for (const namespace of NAMESPACES) {
      await client.create(Namespaces, { metadata: { name: namespace } })
      for (let at = 0; at < EACH; at++) {
        const labels = { half: at % 2 === 0 ? 'even' : 'odd' }
        await client.create(ConfigMaps, {
          metadata: { name: `map-${at}`, namespace, labels },
          data: { at: String(at) },
        })
      }
    }
    const reader = { metadata: { name: 'reader', namespace: 'red' } }
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }]
    await client.create(Roles, { ...reader, rules })
    await client.create(RoleBindings, {
      ...reader,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
      subjects: [{ kind: 'User', name: 'jane', apiGroup: 'rbac.authorization.k8s.io' }],
    })
  })
  after(() => bed?.[Symbol.asyncDispose]())

  it('are those of the selectors, which the address keeps', async () => {
    const { page } = bed
    await bed.open('/core/v1/configmaps?ns=red')
    await page.getByText('View', { exact: true }).click()
    await page.getByLabel('Label selector').fill('half=odd')
    await page.getByLabel('Label selector').press('Enter')
    await page.locator('.state-live', { hasText: /^15$/ }).waitFor()
    assert.match(page.url(), /labels=half%3Dodd/)
    await page.reload()
    await page.locator('.state-live', { hasText: /^15$/ }).waitFor()
    await bed.open('/core/v1/configmaps?ns=red&labels=half%3D%3D%3D')
    await page.getByRole('heading', { name: 'The server refused the list of configmaps' }).waitFor()
  })

  it('show all columns, and are counted by one of them', async () => {
    const { page } = bed
    await bed.open('/core/v1/nodes')
    await page.locator('.state-live').waitFor()
    assert.equal(await page.getByRole('columnheader', { name: 'Kernel-Version' }).count(), 0)
    await page.getByText('View', { exact: true }).click()
    await page.getByLabel('All columns').check()
    await page.getByRole('columnheader', { name: 'Kernel-Version' }).waitFor()
    await bed.open('/core/v1/configmaps?group=%40namespace')
    const red = page.getByRole('list', { name: 'Rows by namespace' }).getByRole('button', { name: /^red/ })
    await red.click()
    await page.getByText(/^31 of/).waitFor()
    assert.match(page.url(), /q=namespace%3D%3Dred/)
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    await red.click()
    await page.locator('.state-live', { hasNotText: 'of' }).waitFor()
  })

  it('are deleted by keyboard, without those that were not checked', async () => {
    const { page, cluster } = bed
    await bed.open('/core/v1/configmaps?ns=blue&sort=%40name')
    await page.getByRole('link', { name: 'map-0' }).waitFor()
    await page.getByRole('region', { name: 'Objects' }).focus()
    for (const key of ['j', 'j', 'Space', 'j', 'Space']) await page.keyboard.press(key)
    await page.getByText('2 checked').waitFor()
    await page.getByRole('button', { name: 'Delete' }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Delete: 2 Config Maps' })
    await dialog.getByText('blue/map-0').waitFor()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    await dialog.getByRole('button', { name: 'Delete' }).focus()
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    const { items } = await cluster.client.list(ConfigMaps, { namespace: 'blue' })
    assert.equal(items.length, EACH + 1 - 2)
  })

  it('are deleted all at once if they fit the filter, also those out of sight', async () => {
    const { page, cluster } = bed
    await bed.open('/core/v1/configmaps?ns=blue&q=half%3Dodd')
    await page.locator('.state-live', { hasText: /^14 of 29$/ }).waitFor()
    await page.getByLabel('Check all rows').check()
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: /The filter hides all/ }).waitFor()
    const { items } = await cluster.client.list(ConfigMaps, { namespace: 'blue' })
    assert.ok(items.every(({ metadata }) => metadata.labels?.['half'] !== 'odd'))
  })

  it('offer a user only what the user may do', async () => {
    const page = await bed.openAs('jane', '/core/v1/configmaps?ns=red')
    await page.getByLabel('Check map-0').check()
    await page.getByText('1 checked').waitFor()
    await page.getByRole('button', { name: 'Uncheck all' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Delete' }).count(), 0)
    assert.deepEqual(bed.troubles, [])
  })
})
