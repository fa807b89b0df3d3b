/** Tests logs of twenty pods at once in a real browser: merged, searched, and saved as kubectl prints them. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'

import type { Page } from 'playwright-core'

import { Deployments } from '#apis/apps/v1.ts'
import { Pods } from '#apis/core/v1.ts'
import { eventually } from '#kits/lib/eventually.ts'

import { type BrowserBed, startBrowserBed, whyNoBrowser } from './browser-bed.ts'
import { HYPERKUBE } from './up-process.ts'

const PODS = 20
const LINES = 250
const LOG = Array.from({ length: LINES }, (_none, at) => `line ${at} of a größeres Log`).join('\n')

describe('logs of many pods', { skip: whyNoBrowser }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'console-logs-'))
  const kubeconfig = join(folder, 'kubeconfig')
  let bed: BrowserBed
  before(async () => {
    bed = await startBrowserBed({ nodes: 3 })
    writeFileSync(kubeconfig, bed.cluster.kubeconfig)
    const labels = { app: 'many' }
    const annotations = { 'simulated.hyperkube.io/log': LOG }
    const template = { metadata: { labels, annotations }, spec: { containers: [{ name: 'app', image: 'shop' }] } }
    await bed.cluster.client.create(Deployments, {
      metadata: { name: 'many', namespace: 'default' },
      spec: { replicas: PODS, selector: { matchLabels: labels }, template },
    } as never)
    await eventually(
      () => bed.cluster.client.list(Pods, { namespace: 'default', fieldSelector: 'status.phase=Running' }),
      ({ items }) => items.length === PODS,
    )
  })
  after(async () => {
    await bed?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  async function kubectl(...args: string[]): Promise<string> {
    const run = promisify(execFile)
    const options = { maxBuffer: 64 << 20, env: { ...process.env, HOME: folder } }
    return (await run(HYPERKUBE, ['kubectl', `--kubeconfig=${kubeconfig}`, ...args], options)).stdout
  }

  async function download(page: Page): Promise<string> {
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).click(),
    ])
    return readFileSync(await saved.path(), 'utf8')
  }

  it('are merged, and saved as kubectl prints them', async () => {
    const { page } = bed
    await bed.open('/apps/v1/deployments/default/many/logs')
    await page.getByText(`${(PODS * LINES).toLocaleString('en')} lines`).waitFor()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    const printed = await kubectl('logs', '-l', 'app=many', '--prefix', '--tail=-1', `--max-log-requests=${PODS}`)
    const wanted = printed.replaceAll(/^\[pod\/(\S+)\] /gm, '$1 ').split('\n')
    assert.deepEqual((await download(page)).split('\n').toSorted(), wanted.toSorted())
  })

  it('are searched by text and by regular expression, and saved with what is found', async () => {
    const { page } = bed
    const search = page.getByRole('searchbox', { name: 'Search in the logs' })
    await search.fill('LINE 7 ')
    await page.getByText(`${PODS} of 5,000 lines`).waitFor()
    const found = (await download(page)).trimEnd().split('\n')
    assert.equal(found.length, PODS)
    assert.ok(found.every((line) => line.endsWith('/app line 7 of a größeres Log')))
    await search.fill(String.raw`/line \d{2} .*größer/`)
    await page.getByText(`${(PODS * 90).toLocaleString('en')} of 5,000 lines`).waitFor()
    await search.fill('/(/')
    await page.getByRole('alert').getByText('Invalid regular expression').waitFor()
  })

  it('of one pod are saved without a prefix, as kubectl prints them', async () => {
    const { page, cluster } = bed
    const [pod] = (await cluster.client.list(Pods, { namespace: 'default' })).items
    const name = pod?.metadata.name ?? ''
    await bed.open(`/core/v1/pods/default/${name}/logs`)
    await page.getByText(`${LINES} lines`).waitFor()
    assert.equal(await download(page), await kubectl('logs', name))
  })

  it('ran no foreign script and broke no rule of the Content-Security-Policy', () => {
    assert.deepEqual(bed.troubles, [])
  })
})
