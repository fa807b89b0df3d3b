/**
 * Tests the console with a custom kind, objects and logs of an attacker: markup, escapes of terminals, characters that
 * reverse the direction of text, and texts of nearly a megabyte. All of it must stay text.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { ConfigMaps, Pods } from '#apis/core/v1.ts'
import { defineKind } from '#client/custom-kind.ts'
import { until } from '#client/until.ts'
import { eventually } from '#kits/lib/eventually.ts'
import type { KubeObject } from '#meta/object.ts'

import { type BrowserBed, checkFitsNarrowScreen, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

const MARKUP = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
const ESCAPES = '\u001B[31mred\u001B[0m\u001B]0;title\u0007\u001B[2J'
const REVERSED = 'abc \u202Egnp.exe\u2066'
const HOSTILE = `${MARKUP} ${ESCAPES} ${REVERSED}`
const LONG = `${MARKUP} ${'long '.repeat(4000)}`
/** With 200 KB of annotations it stays below the 1.5 MB of a request that etcd accepts. */
const BIG = 'x'.repeat(950_000)
const GROUP = 'evil.example'
/** A property of every JavaScript object. */
const KIND = 'constructor'
const Traps = defineKind({ group: GROUP, version: 'v1', kind: KIND, plural: 'constructors' })
const namespace = 'default'

const text = (more: object = {}): object => ({ type: 'string', title: HOSTILE, description: HOSTILE, ...more })
const column = (name: string, jsonPath: string): object => ({ name, type: 'string', description: HOSTILE, jsonPath })

const DEFINITION = {
  metadata: { name: `constructors.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { plural: 'constructors', singular: KIND, kind: KIND, listKind: 'constructorList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        additionalPrinterColumns: [
          column(MARKUP, '.spec.mode'),
          column(MARKUP, '.spec.note'),
          column('Name', '.spec.note'),
          column(`${REVERSED} ${'wide '.repeat(200)}`, '.spec.big'),
        ],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                description: LONG,
                properties: {
                  mode: text({ enum: [MARKUP, 'a\nmetadata: stolen', 'plain'], default: MARKUP }),
                  note: text({ default: HOSTILE }),
                  big: text({ description: LONG }),
                  [MARKUP]: text(),
                },
              },
              status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        },
      },
    ],
  },
}

const CONDITION = { type: 'Ready', status: 'False', reason: HOSTILE, message: LONG, lastTransitionTime: MARKUP }

describe('hostile kinds, objects and logs in the console', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  before(async () => {
    bed = await startBrowserBed({ nodes: 1 })
    const { client } = bed.cluster
    await client.create(CustomResourceDefinitions, DEFINITION as never)
    const where = { client, kind: CustomResourceDefinitions, name: DEFINITION.metadata.name, timeoutMs: 20_000 }
    await until(where, (one) =>
      Boolean(one?.status.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')),
    )
    const labels = { constructor: 'valueOf', [`${'l'.repeat(60)}.example/${'n'.repeat(60)}`]: 'v'.repeat(63) }
    const annotations = { note: HOSTILE, big: 'y'.repeat(200_000), [`${GROUP}/toString`]: MARKUP }
    const owner = await client.create(Traps, {
      metadata: { name: 'trap', namespace, labels, annotations },
      spec: { big: BIG, [MARKUP]: HOSTILE },
      status: { conditions: [CONDITION] },
    } as KubeObject)
    const { uid = '' } = owner.metadata
    const ownerReferences = [{ apiVersion: `${GROUP}/v1`, kind: KIND, name: 'trap', uid }]
    const metadata = { name: 'trapped', namespace, ownerReferences }
    await client.create(ConfigMaps, { metadata, data: { 'a.html': MARKUP, b: HOSTILE } })
    const log = [MARKUP, ESCAPES, REVERSED, '{"__proto__": {"a": 1}, "m": "<b>"}', LONG, 'the last line'].join('\n')
    await client.create(Pods, {
      metadata: { ...metadata, annotations: { 'simulated.hyperkube.io/log': log } },
      spec: { containers: [{ name: 'app', image: 'shop' }] },
    } as never)
  })
  after(() => bed?.[Symbol.asyncDispose]())

  /** Asserts that the page has no elements of the markup, ran no script and fits a narrow screen. Images of CodeMirror do not count. */
  async function checkIsText(): Promise<void> {
    const { page } = bed
    assert.equal(await page.locator('main img:not(.cm-widgetBuffer), main script').count(), 0)
    await checkFitsNarrowScreen(page)
    assert.deepEqual(bed.troubles, [])
  }

  it('are rows and columns of a list', async () => {
    const { page } = bed
    await bed.open(`/${GROUP}/v1/constructors`)
    await page.getByRole('link', { name: 'trap', exact: true }).waitFor()
    assert.equal(await page.getByRole('columnheader', { name: MARKUP }).count(), 2)
    await page.getByRole('cell', { name: MARKUP, exact: true }).waitFor()
    const cells = await page.locator('td').allTextContents()
    assert.ok(cells.every((cell) => cell.length < 10_000))
    assert.deepEqual(await bed.violations('light'), [])
    await bed.open(`/${GROUP}/v1/constructors?group=${encodeURIComponent(MARKUP)}`)
    await page.getByRole('button', { name: MARKUP }).first().click()
    await page.getByRole('link', { name: 'trap', exact: true }).waitFor()
    await checkIsText()
  })

  it('have a page', async () => {
    const { page } = bed
    await bed.open(`/${GROUP}/v1/constructors/${namespace}/trap`)
    await page.getByRole('heading', { name: 'trap', exact: true }).waitFor()
    await page.getByText(MARKUP).first().waitFor()
    await page.getByRole('button', { name: 'Show more of 950,000 characters' }).click()
    await page.getByRole('button', { name: 'Show more of 200,000 characters' }).click()
    await checkIsText()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    await bed.open(`/apiextensions.k8s.io/v1/customresourcedefinitions/_/${DEFINITION.metadata.name}/yaml`)
    await page.getByText(MARKUP).first().waitFor()
    await checkIsText()
  })

  it('have owners and dependents', async () => {
    const { page } = bed
    await bed.open(`/${GROUP}/v1/constructors/${namespace}/trap/related`)
    await page.getByRole('region', { name: 'Owns' }).getByRole('link', { name: 'ConfigMap trapped' }).waitFor()
    await checkIsText()
    await page.getByRole('region', { name: 'Owns' }).getByRole('link', { name: 'ConfigMap trapped' }).click()
    await page.getByText(MARKUP).first().waitFor()
    await bed.open(`/core/v1/configmaps/${namespace}/trapped/related`)
    const owners = page.getByRole('region', { name: 'Owners' })
    await owners.getByRole('link', { name: `${KIND} trap` }).waitFor()
    await bed.open(`/${GROUP}/v1/constructors/${namespace}/trap/events`)
    await page.getByText('There are no events').waitFor()
    await checkIsText()
  })

  it('are YAML, with control characters made visible', async () => {
    const { page } = bed
    await bed.open(`/${GROUP}/v1/constructors/${namespace}/trap/yaml`)
    await page.getByText('kind: constructor').waitFor()
    const lines = await page.locator('.cm-content').textContent()
    assert.ok(lines?.includes(String.raw`\e[31mred`))
    assert.ok(!lines?.includes('\u001B'))
    await page.locator('.cm-specialChar').first().waitFor()
    await checkIsText()
  })

  it('are offered by completion, and stay one value', async () => {
    const { page, cluster } = bed
    await bed.open('/create?ns=default')
    const editor = page.getByRole('textbox', { name: 'YAML of the new objects' })
    await editor.click()
    await page.keyboard.insertText(`apiVersion: ${GROUP}/v1\nkind: ${KIND}\nmetadata:\n  name: made\nspec:\n  mode: `)
    const options = page.locator('.cm-tooltip-autocomplete li')
    // The schema is read when the text names its kind.
    await eventually(
      async () => {
        await page.keyboard.press('Control+Space')
        return options.count()
      },
      (count) => count > 0,
    )
    await options.filter({ hasText: MARKUP }).waitFor()
    await options.filter({ hasText: 'metadata: stolen' }).click()
    await page.keyboard.press('Enter')
    await page.keyboard.press('Control+Space')
    await page.locator('.cm-completionInfo').waitFor()
    await options.filter({ hasText: MARKUP }).click()
    await page.locator('.cm-completionInfo').waitFor({ state: 'detached' })
    await checkIsText()
    await page.keyboard.insertText('x')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('is created').waitFor()
    const made = (await cluster.client.get(Traps, { namespace, name: 'made' })) as KubeObject & { spec: unknown }
    assert.deepEqual(made.spec, { mode: 'a\nmetadata: stolen', note: HOSTILE, [MARKUP]: 'x' })
    await checkIsText()
  })

  it('are quoted by refusals', async () => {
    const { page } = bed
    await bed.open('/create?ns=default')
    await page.getByRole('textbox', { name: 'YAML of the new objects' }).click()
    const object = `apiVersion: ${GROUP}/v1\nkind: ${KIND}\nmetadata:\n  name: other\nspec:\n  mode: <b>no</b>\n`
    await page.keyboard.insertText(object)
    await page.getByRole('button', { name: 'Check' }).click()
    await page
      .getByRole('status')
      .getByText(/Unsupported value: "<b>no<\/b>"/)
      .waitFor()
    await checkIsText()
  })

  it('write logs', async () => {
    const { page } = bed
    await bed.open(`/core/v1/pods/${namespace}/trapped/logs`)
    const log = page.getByRole('log')
    await log.getByText('the last line').waitFor()
    await log.getByText(MARKUP, { exact: true }).waitFor()
    await log.locator('.ansi-1', { hasText: 'red' }).waitFor()
    assert.ok(!/\p{Cc}|\u202E/u.test((await log.textContent()) ?? ''))
    await log.getByText('__proto__').click()
    await page.locator('.log-detail', { hasText: '"<b>"' }).waitFor()
    await log.getByText('long long').first().click()
    await page.locator('.log-detail', { hasText: 'long long' }).waitFor()
    await checkIsText()
  })

  it('are found by the search and the palette', async () => {
    const { page } = bed
    await bed.open('/search?q=trap')
    await page.getByRole('link', { name: 'trap', exact: true }).waitFor()
    await page.getByRole('link', { name: 'trapped' }).first().waitFor()
    await page
      .getByRole('status')
      .getByText(/objects found$/)
      .waitFor()
    await checkIsText()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill('constructors')
    await page.locator('[role=option][aria-selected=true]', { hasText: /constructors/i }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('columnheader', { name: MARKUP }).first().waitFor()
  })
})
