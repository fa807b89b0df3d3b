/**
 * Tests the guide "A quarter of an hour in the browser" (docs/guide/in-the-browser.md) step by step, with nothing but what
 * the page shows. `SCREENSHOTS=folder` keeps a picture of each step.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import type { Page } from 'playwright-core'

import { ensureConsolePage } from '../../../scripts/console-bundle.ts'
import { follow, goTo, launch, whyNoBrowser } from './browser-bed.ts'
import { linkIn, start, type Started, dir } from './up-process.ts'

const SCREENSHOTS = process.env['SCREENSHOTS']

describe('a newcomer in the browser', { skip: whyNoBrowser }, () => {
  const closing = new AsyncDisposableStack()
  const troubles: string[] = []
  let page: Page
  let running: Started
  before(async () => {
    await ensureConsolePage()
    const files = [`--data-dir=${dir}/newcomer`, `--kubeconfig=${dir}/newcomer.kubeconfig`]
    running = start('up', '--runtime=simulated', '--nodes=2', '--secure-port=0', '--console-port=0', ...files)
    const { link } = linkIn(await running.line(/^Console: /))
    const browser = await launch(closing)
    page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage()
    follow(page, troubles)
    await goTo(page, link)
  })
  after(async () => {
    await closing.disposeAsync()
    await running?.stop('SIGKILL')
  })

  async function picture(name: string): Promise<void> {
    if (SCREENSHOTS === undefined) return
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.screenshot({ path: join(SCREENSHOTS, `${name}-${colorScheme}.png`) })
    }
  }

  it('looks around', async () => {
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByRole('link', { name: 'node-0' }).first().waitFor()
    await picture('1-overview')
  })

  it('deploys a program and a Service by forms', async () => {
    await page.getByRole('link', { name: 'Create' }).click()
    await page.getByRole('button', { name: 'Deployment' }).click()
    await page.getByLabel('Name').fill('web')
    await page.getByLabel('Image').fill('nginx')
    await page.getByLabel('Replicas').fill('3')
    await page.getByRole('button', { name: 'Write the YAML' }).click()
    await page.getByRole('button', { name: 'Service' }).click()
    await page.getByLabel('Name').fill('web')
    await page.getByLabel('Pods with label app').fill('web')
    await page.getByRole('button', { name: 'Write the YAML' }).click()
    await picture('2-create')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('is created').first().waitFor()
    await page.getByRole('link', { name: 'web' }).first().click()
    await page.getByText('3/3 ready').waitFor()
    await picture('3-deployed')
  })

  it('breaks it', async () => {
    await page.getByRole('link', { name: 'YAML' }).click()
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await page.locator('.cm-line', { hasText: 'resources: {}' }).click()
    await page.keyboard.press('End')
    for (let letters = 0; letters < 2; letters++) await page.keyboard.press('Backspace')
    await page.keyboard.type('{requests: {cpu: "1000"}}', { delay: 10 })
    await picture('4-edit')
    await page.getByRole('button', { name: 'Check and compare' }).click()
    await page.getByRole('button', { name: 'Apply' }).waitFor()
    await picture('5-compare')
    await page.getByRole('button', { name: 'Apply' }).click()
  })

  it('finds out why', async () => {
    await page.getByText('1/3 updated').waitFor()
    await page.getByRole('link', { name: 'Summary' }).click()
    await page
      .getByRole('region', { name: 'Why it is not ready' })
      .getByText(/Insufficient cpu/)
      .first()
      .waitFor()
    await picture('6-why')
  })

  it('repairs it', async () => {
    await page.getByRole('button', { name: 'Roll back' }).click()
    await page.getByRole('dialog').waitFor()
    await picture('7-roll-back')
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
    await page.getByRole('region', { name: 'Why it is not ready' }).waitFor({ state: 'detached' })
    await page.getByText('3/3 ready').waitFor()
    await page.getByRole('link', { name: 'Events', exact: true }).last().click()
    await page.getByText('Scaled down replica set').first().waitFor()
    await picture('8-events')
  })

  it('meets no error of a script', () => assert.deepEqual(troubles, []))
})
