/**
 * Tests what people see who need large text, forced colours, less motion or a screen reader: on the main pages, in a
 * real browser.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import type { Locator } from 'playwright-core'

import { Deployments } from '#apis/apps/v1.ts'
import { ConfigMaps } from '#apis/core/v1.ts'
import { eventually } from '#kits/lib/eventually.ts'

import { type BrowserBed, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

const DEPLOYMENT = '/apps/v1/deployments/default/web'
/** A page, and the heading or the text that it has when it is complete. */
const PAGES: readonly (readonly [path: string, text: string | RegExp])[] = [
  ['', 'All pods run or have completed.'],
  ['/core/v1/pods?ns=default', /^web-/],
  [DEPLOYMENT, '2/2 ready'],
  [`${DEPLOYMENT}/yaml`, 'kind: Deployment'],
  [`${DEPLOYMENT}/events`, /^Scaled up replica set/],
  [`${DEPLOYMENT}/related`, /^ReplicaSet web-/],
  [`${DEPLOYMENT}/logs`, '2 lines'],
  ['/events', /^Scaled up replica set/],
  ['/search?q=web', /objects found$/],
  ['/certificates', 'CN='],
  ['/rights?verb=get&of=secrets', 'system:masters'],
  ['/create?ns=default', 'Apply'],
]

describe('the console for people who see it differently', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  before(async () => {
    bed = await startBrowserBed({ nodes: 1 })
    const { client } = bed.cluster
    const labels = { app: 'web' }
    await client.create(Deployments, {
      metadata: { name: 'web', namespace: 'default' },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'shop' }] } },
      },
    } as never)
    await client.create(ConfigMaps, { metadata: { name: 'settings', namespace: 'default' }, data: { mode: 'fast' } })
    await bed.open(DEPLOYMENT)
    await bed.page.getByText('2/2 ready').waitFor()
  })
  after(() => bed?.[Symbol.asyncDispose]())

  async function open([path, text]: (typeof PAGES)[number]): Promise<void> {
    await bed.open(path)
    await bed.page.getByText(text).first().waitFor()
  }

  it('fits a zoom of 200 % and a window of 320 pixels', async () => {
    const { page } = bed
    // A zoom of 200 % halves the 1280 pixels of the window.
    for (const one of PAGES) {
      await open(one)
      for (const width of [640, 320]) {
        await page.setViewportSize({ width, height: 400 })
        await eventually(
          async () => [one[0], width, await page.evaluate<number>('document.documentElement.scrollWidth')] as const,
          ([, , found]) => found === width,
        )
      }
    }
    await page.setViewportSize({ width: 1280, height: 800 })
  })

  it('keeps all of it readable with forced colours', async () => {
    const { page } = bed
    await page.emulateMedia({ forcedColors: 'active' })
    for (const one of PAGES) {
      await open(one)
      // The browser chooses the colours, while axe reads those of the page.
      const violations = (await bed.violations('dark')).filter((text) => !text.startsWith('color-contrast'))
      assert.deepEqual(violations, [], one[0])
      // Forced colours remove backgrounds and shadows, so that only a border shows where a control is.
      const bare = await page.evaluate<readonly string[]>(CONTROLS_WITHOUT_BORDER)
      assert.deepEqual(bare, [], one[0])
    }
    await open(['/core/v1/pods?ns=default', /^web-/])
    await page.getByRole('region', { name: 'Objects' }).press('j')
    await page.locator('tr.is-selected').waitFor()
    await page.keyboard.press('Control+k')
    await page.locator('.palette li').first().waitFor()
    const [marked = [], plain = []] = await page.evaluate<readonly (readonly string[])[]>(STATES)
    for (const [at, color] of marked.entries()) assert.notEqual(color, plain[at], `state ${at}`)
    await page.keyboard.press('Escape')
    await page.emulateMedia({ forcedColors: 'none' })
  })

  it('does not move for people who prefer reduced motion', async () => {
    const { page } = bed
    await page.emulateMedia({ reducedMotion: 'reduce' })
    for (const one of PAGES) {
      await open(one)
      assert.deepEqual(await page.evaluate<readonly string[]>(MOVING), [], one[0])
    }
    await page.emulateMedia({ reducedMotion: 'no-preference' })
  })

  it('reads as lists, tables and headings', async () => {
    const { page } = bed
    await bed.open('/core/v1/configmaps?ns=default')
    await page.getByRole('link', { name: 'settings' }).waitFor()
    await reads(page.getByRole('region', { name: 'Objects' }), LIST)
    await bed.open('/core/v1/configmaps/default/settings')
    await page.getByRole('heading', { name: 'Data' }).waitFor()
    await reads(page.getByRole('main'), OBJECT)
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No other objects go with it.').waitFor()
    await reads(page.getByRole('dialog'), DIALOG)
    await page.keyboard.press('Escape')
  })

  /** What a screen reader finds, without ages. */
  async function reads(part: Locator, wanted: string): Promise<void> {
    const found = (await part.ariaSnapshot()).replaceAll(/\d+[smhd]\d*s?\b/g, 'AGE')
    assert.equal(found, wanted.trim())
  }

  it('ran no foreign script and broke no rule of the Content-Security-Policy', () => {
    assert.deepEqual(bed.troubles, [])
  })
})

const CONTROLS_WITHOUT_BORDER = `[...document.querySelectorAll('main button:not(th button), main select, main input:not([type=checkbox]):not([type=radio])')]
  .filter((one) => one.checkVisibility() && !one.closest('.cm-editor'))
  .filter((one) => {
    const { borderTopStyle, borderBottomStyle, textDecorationLine } = getComputedStyle(one)
    return borderTopStyle === 'none' && borderBottomStyle === 'none' && textDecorationLine === 'none'
  })
  .map((one) => one.outerHTML.slice(0, 120))`

const LIST = `
- region "Objects":
  - table:
    - rowgroup:
      - row "Check all rows Name Data Age":
        - columnheader "Check all rows":
          - checkbox "Check all rows"
        - columnheader "Name":
          - button "Name"
        - columnheader "Data":
          - button "Data"
        - columnheader "Age":
          - button "Age"
    - rowgroup:
      - row "Check kube-root-ca.crt kube-root-ca.crt 1 AGE":
        - cell "Check kube-root-ca.crt":
          - checkbox "Check kube-root-ca.crt"
        - cell "kube-root-ca.crt":
          - link "kube-root-ca.crt":
            - /url: /ui/c/local/core/v1/configmaps/default/kube-root-ca.crt?ns=default
        - cell "1"
        - cell "AGE"
      - row "Check settings settings 1 AGE":
        - cell "Check settings":
          - checkbox "Check settings"
        - cell "settings":
          - link "settings":
            - /url: /ui/c/local/core/v1/configmaps/default/settings?ns=default
        - cell "1"
        - cell "AGE"
`
const OBJECT = `
- main:
  - paragraph:
    - text: ConfigMap in
    - link "default":
      - /url: /ui/c/local/core/v1/namespaces/_/default
  - heading "settings" [level=1]
  - time: AGE
  - text: old
  - button "Labels"
  - button "Delete"
  - status
  - navigation "Parts of the object":
    - link "Summary":
      - /url: /ui/c/local/core/v1/configmaps/default/settings
    - link "YAML":
      - /url: /ui/c/local/core/v1/configmaps/default/settings/yaml
    - link "Events":
      - /url: /ui/c/local/core/v1/configmaps/default/settings/events
    - link "Related":
      - /url: /ui/c/local/core/v1/configmaps/default/settings/related
  - heading "Data" [level=2]
  - term:
    - text: mode 4 bytes
    - button "Copy mode": Copy
  - definition: fast
`
const DIALOG = `
- dialog "Delete ConfigMap settings":
  - heading "Delete ConfigMap settings" [level=2]
  - form "Delete":
    - paragraph: No other objects go with it.
    - text: Objects that it owns
    - combobox "Objects that it owns":
      - option "Delete it now, and what it owns after it" [selected]
      - option "Delete what it owns first; it stays until then"
      - option "Keep what it owns"
    - button "Delete"
    - button "Cancel"
`

/** Backgrounds of the selected row, the selected command and the dot of a live list, and those around them. */
const STATES = `[
  ['tr.is-selected td', '.palette [aria-selected=true]', '.state-live'],
  ['tbody tr:not(.is-selected) td', '.palette [aria-selected=false]', 'main'],
].map((all, at) => all.map((one) => {
  const pseudo = one === '.state-live' ? '::before' : undefined
  return getComputedStyle(document.querySelector(one), pseudo).backgroundColor
}))`

const MOVING = `document.getAnimations()
  .filter((one) => (one.effect?.getComputedTiming().activeDuration ?? 0) > 1)
  .map((one) => one.effect.target.outerHTML.slice(0, 120))`
