/** Tests the page of one object in a real browser, on a cluster with simulated nodes. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import type { Locator, Page } from 'playwright-core'

import { Deployments } from '#apis/apps/v1.ts'
import { ConfigMaps, Pods } from '#apis/core/v1.ts'
import { RoleBindings } from '#apis/rbac/v1.ts'
import { eventually } from '#kits/lib/eventually.ts'
import type { KubeObject } from '#meta/object.ts'

import { type BrowserBed, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

const IN_DEFAULT = { namespace: 'default' }
const MARKUP = '<img src=x onerror="alert(1)"><script>alert(2)</script>'

function tab(page: Page, name: string): Locator {
  return page.getByRole('navigation', { name: 'Parts of the object' }).getByRole('link', { name })
}

describe('the page of an object', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  before(async () => {
    bed = await startBrowserBed({ nodes: 2 })
  })
  after(() => bed?.[Symbol.asyncDispose]())

  it('says why a pod crashes', async () => {
    const { cluster, page } = bed
    await cluster.client.create(Pods, {
      metadata: { name: 'crashing', namespace: 'default', annotations: { 'simulated.hyperkube.io/crash': '1s' } },
      spec: { containers: [{ name: 'app', image: 'shop' }] },
    } as never)
    await bed.open('/core/v1/pods/default/crashing')
    const why = page.getByRole('region', { name: 'Why it is not ready' })
    await why.getByText('the kubelet waits before it starts it again').waitFor()
    await why.getByText('Its last run ended: Error, exit code 1').waitFor()
    await tab(page, 'Events').click()
    await page.getByText('Back-off restarting failed container').first().waitFor()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    await tab(page, 'Summary').click()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
  })

  it('edits labels as YAML, names the manager of a conflict, and takes over', async () => {
    const { cluster, page } = bed
    const object = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'settings', namespace: 'default', labels: { tier: 'old' } },
      data: { key: 'x' },
    }
    await cluster.client.apply(ConfigMaps, object, { fieldManager: 'helm' })
    await bed.open('/core/v1/configmaps/default/settings/yaml')
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await page.locator('.cm-line', { hasText: 'tier: old' }).click()
    await page.keyboard.press('End')
    for (let letters = 0; letters < 3; letters++) await page.keyboard.press('Backspace')
    await page.keyboard.type('new')
    await page.reload()
    await page.locator('.cm-line', { hasText: 'tier: new' }).waitFor()
    await page.getByRole('button', { name: 'Check and compare' }).click()
    await page.getByText('helm owns metadata.labels.tier').waitFor()
    await page.getByRole('button', { name: 'Take over and check again' }).click()
    await page.getByText('The server accepts the change').waitFor()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    await page.getByRole('button', { name: 'Apply', exact: true }).click()
    await page.getByRole('button', { name: 'Edit', exact: true }).waitFor()
    const { metadata } = await cluster.client.get(ConfigMaps, { ...IN_DEFAULT, name: 'settings' })
    assert.equal(metadata.labels?.['tier'], 'new')
    const managers = metadata.managedFields?.map(({ manager, operation }) => `${manager} ${operation}`)
    assert.ok(managers?.includes('hyperkube-console Apply'), managers?.join() ?? '')
  })

  it('merges changes of others into an edit', async () => {
    const { cluster, page } = bed
    const where = { ...IN_DEFAULT, name: 'settings' }
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await page.locator('.cm-line', { hasText: 'key: x' }).click()
    await page.keyboard.press('End')
    await page.keyboard.type('y')
    const live = await cluster.client.get(ConfigMaps, where)
    await cluster.client.update(ConfigMaps, {
      ...live,
      metadata: { ...live.metadata, annotations: { other: 'person' } },
    })
    await page.locator('.cm-line', { hasText: 'other: person' }).waitFor()
    await page.locator('.cm-line', { hasText: 'key: xy' }).waitFor()
    await page.getByRole('button', { name: 'Discard' }).click()
  })

  it('scales by keyboard, and shows what is deleted', async () => {
    const { cluster, page } = bed
    const labels = { app: 'web' }
    await cluster.client.create(Deployments, {
      metadata: { name: 'web', namespace: 'default' },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'shop' }] } },
      },
    } as never)
    await bed.open('/apps/v1/deployments/default/web')
    await page.getByText('1/1 ready').waitFor()
    await page.getByRole('button', { name: 'Scale' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    await page.keyboard.press('Control+a')
    await page.keyboard.type('3')
    await page.keyboard.press('Enter')
    await page.getByText('3/3 ready').waitFor()
    await tab(page, 'Related').click()
    await page
      .getByRole('region', { name: 'Owns' })
      .getByText(/^ReplicaSet web-/)
      .waitFor()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('It owns 1 ReplicaSet, 3 Pods.').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText(/^Deleted at /).waitFor()
    await page.getByRole('button', { name: 'Scale' }).waitFor({ state: 'detached' })
    await eventually(
      () =>
        cluster.client.list(Pods, { namespace: 'default', labelSelector: 'app=web' }).then(({ items }) => items.length),
      (left) => left === 0,
    )
  })

  it('offers a reader no actions, and names the refusal to a stranger', async () => {
    const { cluster } = bed
    const labels = { app: 'keeps' }
    await cluster.client.create(Deployments, {
      metadata: { name: 'keeps', namespace: 'default' },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'shop' }] } },
      },
    } as never)
    await cluster.client.create(RoleBindings, {
      metadata: { name: 'readers', namespace: 'default' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'User', name: 'ada', apiGroup: 'rbac.authorization.k8s.io' }],
    })
    const reader = await bed.openAs('ada', '/apps/v1/deployments/default/keeps')
    await reader.getByText('2/2 ready').waitFor()
    await tab(reader, 'YAML').click()
    await reader.locator('.cm-line', { hasText: 'kind: Deployment' }).waitFor()
    assert.equal(await reader.getByRole('button', { name: /^(?:Scale|Delete|Edit)$/ }).count(), 0)
    const stranger = await bed.openAs('eve', '/apps/v1/deployments/default/keeps')
    await stranger.getByText(/User "eve" cannot list resource "deployments"/).waitFor()
  })

  it('opens tabs by their keys', async () => {
    const { page } = bed
    await bed.open('/apps/v1/deployments/default/keeps')
    await page.getByText('2/2 ready').waitFor()
    await page.keyboard.press('v')
    await page.getByText('Scaled up replica set', { exact: false }).first().waitFor()
    await page.keyboard.press('d')
    await page.getByRole('heading', { name: 'Replicas' }).waitFor()
  })

  it('shows hostile content as text', async () => {
    const { cluster, page } = bed
    const data = {
      [`a.conf`]: MARKUP,
      esc: '\u001B[31mred\u001B[0m',
      bidi: 'abc \u202Egnp.exe',
      big: 'x'.repeat(700_000),
    }
    const annotations = { markup: MARKUP, big: 'y'.repeat(200_000) }
    await cluster.client.create(ConfigMaps, {
      metadata: { name: 'hostile', namespace: 'default', annotations },
      data,
    })
    await bed.open('/core/v1/configmaps/default/hostile')
    await page.getByText(MARKUP).first().waitFor()
    await page.getByRole('button', { name: 'Show more of 200,000 characters' }).click()
    await page.getByRole('button', { name: 'Less' }).waitFor()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    await tab(page, 'YAML').click()
    await page.locator('.cm-line', { hasText: 'onerror' }).first().waitFor()
    await tab(page, 'Events').click()
    await page.getByText('There are no events').waitFor()
    assert.equal(await page.locator('img').count(), 0)
  })

  it('creates objects by a form', async () => {
    const { cluster, page } = bed
    await bed.open('/create?ns=default')
    await page.getByRole('button', { name: 'ConfigMap' }).click()
    await page.getByLabel('Name').fill('made')
    await page.getByLabel('Key').fill('a')
    await page.getByRole('button', { name: 'Write the YAML' }).click()
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByText('would be created').waitFor()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('is created').waitFor()
    const { metadata }: KubeObject = await cluster.client.get(ConfigMaps, { ...IN_DEFAULT, name: 'made' })
    assert.equal(metadata.name, 'made')
  })

  it('keeps a dialog and its text when the connection is lost', async () => {
    const { cluster, page } = bed
    await bed.open('/apps/v1/deployments/default/keeps')
    await page.getByText('2/2 ready').waitFor()
    await page.getByRole('button', { name: 'Scale' }).click()
    await page.getByLabel('Replicas').fill('7')
    await cluster.stop()
    await page.getByText('This is the state of').waitFor()
    assert.equal(await page.getByLabel('Replicas').inputValue(), '7')
    await page.getByLabel('Replicas').press('Enter')
    await page.getByRole('dialog').getByRole('alert').waitFor()
  })

  it('ran no foreign script and broke no rule of the Content-Security-Policy', () => {
    assert.deepEqual(bed.troubles, [])
  })
})
