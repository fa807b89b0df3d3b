/** The pages of the console of one cluster, which runs a small shop. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Page } from 'playwright-core'

import { realClock, sleep } from '#lib/clock.ts'

import { launch } from '../browser-bed.ts'
import { HYPERKUBE, linkIn, start } from '../up-process.ts'
import { type Take, viewsIn } from './camera.ts'
import { OBJECTS } from './shop.ts'

/** The path of a list or an object, below the cluster. */
type Address = readonly [name: string, path: string, ready?: string]

const LISTS: readonly Address[] = [
  ['pods', '/core/v1/pods?ns=shop', 'web-'],
  ['pods-all', '/core/v1/pods', 'web-'],
  ['pods-wide', '/core/v1/pods?ns=shop&wide=1&group=Status', 'web-'],
  ['pods-filtered', '/core/v1/pods?q=nothing-fits', 'The filter hides'],
  ['deployments', '/apps/v1/deployments?ns=shop', 'web'],
  ['services', '/core/v1/services', 'web'],
  ['nodes', '/core/v1/nodes', 'node-0'],
  ['configmaps', '/core/v1/configmaps?ns=shop', 'settings'],
  ['events', '/core/v1/events?ns=shop', 'Scheduled'],
  ['gadgets', '/example.com/v1/gadgets?ns=shop', 'blue'],
  ['empty', '/networking.k8s.io/v1/ingressclasses', 'There are no'],
  ['unknown-kind', '/example.com/v1/nothings', 'The server refused'],
]

const PAGES: readonly Address[] = [
  ['pod', '/core/v1/pods/shop/crashing', 'Why it is not ready'],
  ['deployment', '/apps/v1/deployments/shop/web', '3/3 ready'],
  ['deployment-broken', '/apps/v1/deployments/shop/broken', 'Why it is not ready'],
  ['statefulset', '/apps/v1/statefulsets/shop/db', 'db'],
  ['daemonset', '/apps/v1/daemonsets/shop/agent', 'agent'],
  ['job', '/batch/v1/jobs/shop/migrate', 'migrate'],
  ['cronjob', '/batch/v1/cronjobs/shop/report', 'report'],
  ['service', '/core/v1/services/shop/web', 'web'],
  ['ingress', '/networking.k8s.io/v1/ingresses/shop/web', 'web'],
  ['claim', '/core/v1/persistentvolumeclaims/shop/disk', 'disk'],
  ['configmap', '/core/v1/configmaps/shop/settings', 'settings'],
  ['secret', '/core/v1/secrets/shop/password', 'password'],
  ['node', '/core/v1/nodes/_/node-0', 'Allocatable'],
  ['namespace', '/core/v1/namespaces/_/shop', 'shop'],
  ['quota', '/core/v1/resourcequotas/shop/limits', 'limits'],
  ['role', '/rbac.authorization.k8s.io/v1/roles/shop/reader', 'reader'],
  ['binding', '/rbac.authorization.k8s.io/v1/rolebindings/shop/readers', 'readers'],
  ['service-account', '/core/v1/serviceaccounts/shop/default', 'default'],
  ['autoscaler', '/autoscaling/v2/horizontalpodautoscalers/shop/web', 'web'],
  ['definition', '/apiextensions.k8s.io/v1/customresourcedefinitions/_/gadgets.example.com', 'gadgets.example.com'],
  ['gadget', '/example.com/v1/gadgets/shop/blue', 'blue'],
  ['missing', '/core/v1/pods/shop/nothing', 'There is no'],
  ['pod-yaml', '/core/v1/pods/shop/crashing/yaml', 'kind: Pod'],
  ['pod-logs', '/core/v1/pods/shop/talking/logs', 'the last line'],
  ['deployment-logs', '/apps/v1/deployments/shop/web/logs', 'started'],
  ['pod-shell', '/core/v1/pods/shop/talking/shell'],
  ['pod-events', '/core/v1/pods/shop/crashing/events', 'Back-off'],
  ['deployment-related', '/apps/v1/deployments/shop/web/related', 'ReplicaSet web-'],
  ['no-tab', '/core/v1/pods/shop/crashing/nonsense', 'This tab does not exist'],
]

export async function takeOneCluster(take: Take): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'console-pictures-'))
  closing.defer(() => rmSync(folder, { recursive: true, force: true }))
  const kubeconfig = join(folder, 'config')
  const files = [`--data-dir=${folder}/data`, `--kubeconfig=${kubeconfig}`]
  const up = start('up', '--runtime=simulated', '--nodes=4', '--secure-port=0', '--console-port=0', ...files)
  closing.defer(() => up.stop('SIGKILL'))
  const { link, port } = linkIn(await up.line(/^Console: /))
  const objects = join(folder, 'objects.json')
  writeFileSync(objects, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: OBJECTS }))
  const kubectl = (...args: string[]): void => {
    const done = spawnSync(HYPERKUBE, ['kubectl', `--kubeconfig=${kubeconfig}`, ...args], { encoding: 'utf8' })
    process.stdout.write(done.stdout + done.stderr)
  }
  // The kind of the custom objects exists a moment after its definition.
  for (let tries = 0; tries < 3; tries++) kubectl('apply', '-f', objects)
  const browser = await launch(closing)
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage()
  page.setDefaultTimeout(15_000)
  await take('00-no-session', page, async () => {
    await page.goto(`http://127.0.0.1:${port}/ui/`)
    await page.getByText('This link is no longer valid').waitFor()
  })
  await page.goto(link)
  const open = async (path: string): Promise<void> =>
    void (await page.goto(`http://127.0.0.1:${port}/ui/c/local${path}`))
  await takeAddresses(take, page, open)
  await takeDialogs(take, page, open)
}

async function takeAddresses(take: Take, page: Page, open: (path: string) => Promise<void>): Promise<void> {
  await open('')
  const all: readonly Address[] = [
    ['10-overview', '', 'node-0'],
    ...(await viewsIn(page)).map((name): Address => [`11-view-${name}`, `/${name}`]),
    ['11-view-search-found', '/search?q=web', 'objects found'],
    ['11-view-rights-found', '/rights?verb=get&resource=secrets'],
    ...LISTS.map(([name, ...rest]): Address => [`12-list-${name}`, ...rest]),
    ...PAGES.map(([name, ...rest]): Address => [`13-object-${name}`, ...rest]),
  ]
  for (const [name, path, ready] of all) {
    await take(name, page, async () => {
      await open(path)
      if (ready !== undefined) await page.locator('main').getByText(ready).first().waitFor()
      // Charts, counts and rights come after the page.
      await sleep(realClock, 1500)
    })
  }
}

async function takeDialogs(take: Take, page: Page, open: (path: string) => Promise<void>): Promise<void> {
  const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click()
  for (const name of ['Scale', 'Restart', 'Roll back', 'Labels', 'Delete']) {
    await take(`14-dialog-${name.toLowerCase().replace(' ', '-')}`, page, async () => {
      await open('/apps/v1/deployments/shop/web')
      await press(name)
      await page.getByRole('dialog').waitFor()
      await sleep(realClock, 500)
    })
  }
  await take('14-dialog-drain', page, async () => {
    await open('/core/v1/nodes/_/node-1')
    await press('Drain')
    await page.getByRole('dialog').waitFor()
    await sleep(realClock, 500)
  })
  await take('14-dialog-debug', page, async () => {
    await open('/core/v1/pods/shop/talking')
    await press('Debug')
    await page.getByRole('dialog').waitFor()
  })
  await take('14-palette', page, async () => {
    await open('/core/v1/pods?ns=shop')
    await page.getByText('talking').first().waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog').getByRole('combobox').fill('po')
    await sleep(realClock, 300)
  })
  await take('14-keys', page, async () => {
    await open('/core/v1/pods?ns=shop')
    await page.getByText('talking').first().waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
  })
  await take('14-list-menu', page, async () => {
    await open('/core/v1/pods?ns=shop')
    await page.getByText('talking').first().waitFor()
    await page.getByText('View', { exact: true }).click()
  })
  await take('14-bulk', page, async () => {
    await open('/apps/v1/deployments?ns=shop')
    await page.getByText('broken').first().waitFor()
    await page.getByRole('checkbox', { name: 'Check all rows' }).click()
    await page.getByRole('button', { name: /^Delete/ }).waitFor()
  })
  await takeEditor(take, page, open)
}

async function takeEditor(take: Take, page: Page, open: (path: string) => Promise<void>): Promise<void> {
  const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click()
  const edit = async (): Promise<void> => {
    await page.evaluate('sessionStorage.clear()')
    await open('/apps/v1/deployments/shop/web/yaml')
    await press('Edit')
    await page.getByText('Ctrl-Space completes').waitFor()
    await page.locator('.cm-line', { hasText: 'replicas: 3' }).click()
    await page.keyboard.press('End')
  }
  await take('15-edit-completion', page, async () => {
    await edit()
    await page.keyboard.press('Enter')
    await page.keyboard.type('min', { delay: 100 })
    await page.locator('.cm-tooltip-autocomplete').waitFor()
    await sleep(realClock, 500)
  })
  await take('15-edit-mistake', page, async () => {
    await edit()
    await page.keyboard.press('Enter')
    await page.keyboard.type('nonsense: 1', { delay: 20 })
    await page.locator('.cm-lintRange-error').first().waitFor()
    await press('Check and compare')
    await sleep(realClock, 1000)
  })
  await page.evaluate('sessionStorage.clear()')
  await take('15-edit-comparison', page, async () => {
    await edit()
    await page.keyboard.press('Backspace')
    await page.keyboard.type('5')
    await press('Check and compare')
    await press('Take over and check again')
    await sleep(realClock, 1500)
  })
  await page.evaluate('sessionStorage.clear()')
  await takeCreation(take, page, open)
}

async function takeCreation(take: Take, page: Page, open: (path: string) => Promise<void>): Promise<void> {
  const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click()
  await take('15-create-form', page, async () => {
    await open('/create?ns=shop')
    await press('Deployment')
    await page.getByLabel('Name').fill('more')
    await page.getByLabel('Image').fill('nginx')
  })
  await take('15-created', page, async () => {
    await open('/create?ns=shop')
    await press('ConfigMap')
    await page.getByLabel('Name').fill('more')
    await page.getByLabel('Key').fill('a')
    await press('Write the YAML')
    await press('Check')
    await page.getByText('would be created').waitFor()
  })
}
