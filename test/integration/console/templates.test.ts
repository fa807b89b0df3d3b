/** Tests the pages of cluster templates, and clusters of the server's machine, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { ClusterTemplates } from '#management/kinds/cluster-template.ts'
import { Clusters } from '#management/kinds/cluster.ts'

import { eventually } from '../management/bed.ts'
import { whyNoBrowser } from './browser-bed.ts'
import { type ServerBed, startServerBed } from './server-bed.ts'

describe('cluster templates in the console', { skip: whyNoBrowser }, () => {
  let bed: ServerBed
  before(async () => {
    bed = await startServerBed()
    await bed.server.createUser('reader')
  })
  after(() => bed?.[Symbol.asyncDispose]())

  it('are created from a cluster file, and refused with clear words', async () => {
    const { page, server } = bed
    await bed.open('/cluster-templates')
    await page.getByText('There are no cluster templates').waitFor()
    assert.deepEqual(await bed.violations(), [])
    await page.getByRole('link', { name: 'Create a template' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Small')
    await page.getByLabel('Editable paths').fill('nodes\nservices.kubelet..x')
    assert.deepEqual(await bed.violations(), [])
    await page.getByRole('button', { name: 'Create the template' }).click()
    await page.getByText('editable must be a list of paths').waitFor()
    await page.getByLabel('Editable paths').fill('nodes\nservices.kubelet.extra_args')
    await page.getByRole('button', { name: 'Create the template' }).click()
    await page.getByRole('heading', { name: 'Small' }).waitFor()
    await page.getByText('services.kubelet.extra_args').waitFor()
    assert.deepEqual(await bed.violations(), [])
    assert.equal(server.running.objects.list(ClusterTemplates).length, 1)
  })

  it('are followed by new clusters, which say what is locked', async () => {
    const { page, server } = bed
    await bed.open('/build')
    await page.getByLabel('Name', { exact: true }).fill('shop')
    await page.getByRole('combobox', { name: 'Template' }).selectOption({ label: 'Small' })
    await page.getByText('The rest of the file comes from the template.').waitFor()
    await page.getByLabel('Address', { exact: true }).fill('10.0.0.1')
    await page.getByRole('combobox', { name: 'Network' }).selectOption('none')
    await page.getByRole('button', { name: 'Create the cluster' }).click()
    await page.getByText(/^network\.plugin: /).waitFor()
    await page.getByRole('combobox', { name: 'Network' }).selectOption('')
    await page.getByRole('button', { name: 'Create the cluster' }).click()
    await page.getByText('SSH key of the server').waitFor()
    const [cluster] = server.running.objects.list(Clusters).filter(({ spec }) => spec.source === 'built')
    assert.match(cluster?.spec.build?.template ?? '', /^ct-/)
  })

  it('stay while a cluster follows them, and are read-only for others', async () => {
    const { page, server } = bed
    await bed.open('/cluster-templates')
    await page.getByRole('link', { name: 'Small' }).click()
    await page.getByRole('button', { name: 'Remove …' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('cluster "shop" follows it').waitFor()
    const other = await bed.openAs('reader', '/cluster-templates')
    await other.getByText('Creating templates needs the global role').waitFor()
    await other.getByRole('link', { name: 'Small' }).click()
    await other.getByRole('heading', { name: 'Small' }).waitFor()
    assert.equal(await other.getByRole('button', { name: 'Remove …' }).count(), 0)
    await other.context().close()
    const [template] = server.running.objects.list(ClusterTemplates)
    for (const { metadata, spec } of server.running.objects.list(Clusters)) {
      if (spec.source !== 'built') continue
      const path = `/v3/clusters/${metadata.name}`
      await server.request('DELETE', path, { token: server.administrator, body: { force: true } })
    }
    await eventually('the cluster is gone', () => {
      return server.running.objects.list(Clusters).every(({ spec }) => spec.source !== 'built')
    })
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('There are no cluster templates').waitFor()
    assert.equal(server.running.objects.get(ClusterTemplates, template?.metadata.name ?? ''), undefined)
    assert.deepEqual(bed.troubles, [])
  })
})
