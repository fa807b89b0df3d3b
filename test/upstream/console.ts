/**
 * Tests the web console of `hyperkube server` on a cluster of upstream's kube-apiserver, etcd and
 * kube-controller-manager, in a real browser and by what the page shows: `node test/upstream/console.ts`.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Locator } from 'playwright-core'

import { realClock, sleep } from '#lib/clock.ts'

import { ensureConsolePage } from '../../scripts/console-bundle.ts'
import { launch } from '../integration/console/browser-bed.ts'
import { NODE, startUpstreamCluster, type UpstreamCluster } from './console/cluster.ts'
import { GADGETS, WEB_WITH_MISTAKE } from './console/objects.ts'
import { visit, type Visitor } from './console/visitor.ts'
import { startManagementServer } from './management-server.ts'
import { startOurs, writeKubeconfig } from './ours.ts'
import { mustBe, Shown } from './shown.ts'

const CONNECTED_SECONDS = 10
const REVOKED_SECONDS = 5
const SHOP = 'shop'

const shown = new Shown()
const folder = await mkdtemp(join(tmpdir(), 'hyperkube-console-'))
const closing = new AsyncDisposableStack()
const troubles: string[] = []

try {
  await story()
} finally {
  await closing.disposeAsync()
  await rm(folder, { recursive: true, force: true })
}
process.exitCode = shown.end()

async function story(): Promise<void> {
  await ensureConsolePage()
  const server = closing.use(await startManagementServer(join(folder, 'server')))
  const upstream = await startUpstreamCluster(join(folder, 'upstream'), closing)
  await upstream.kubectl(['create', 'namespace', SHOP])
  const browser = await launch(closing)
  const admin = await visit(browser, { url: server.url, username: 'admin', troubles })
  let id = ''
  await shown.step(
    `imports a cluster by the command of the page, connected within ${CONNECTED_SECONDS} s`,
    async () => {
      const [token, name] = await importByCommand(admin, upstream)
      id = name
      const fromMs = realClock.elapsed()
      const agent = await upstream.kubeconfigOf('hyperkube-system', 'hyperkube-cluster-agent')
      await server.runAgent(id, token, agent)
      await admin.page.getByRole('article', { name: 'upstream' }).getByText('Ready', { exact: true }).waitFor()
      return within(fromMs, CONNECTED_SECONDS)
    },
  )
  await shown.step('shows a cluster of ours beside it', async () => {
    const ours = await startOurs(join(folder, 'ours'))
    closing.defer(() => ours.stop())
    const kubeconfig = await writeKubeconfig(join(folder, 'ours.kubeconfig'), ours)
    const other = await server.importAs('ours', kubeconfig)
    return showBoth(admin, upstream, { id, other })
  })
  await shown.step('marks a wrong field before it applies a Deployment', () => createByYaml(admin, id))
  await shown.step('follows its rollout, scales it by keyboard and rolls it back', () => rollOut(admin, id))
  await shown.step('edits labels of a Node while its status is written every second', () =>
    editNode(admin, upstream, id),
  )
  await shown.step('names the manager of a field in conflict, and takes the field over', () =>
    takeOver(admin, upstream, id),
  )
  await shown.step('shows a new kind with its columns, and forgets it', () => followKind(admin, upstream, id))
  await server.createUser('jane')
  const jane = await visit(browser, { url: server.url, username: 'jane', troubles })
  await shown.step('shows a member of a project its namespace only', () => addMember({ admin, jane }, upstream, id))
  await shown.step(`takes rights away within ${REVOKED_SECONDS} s, with the page open`, () =>
    removeMember({ admin, jane }, id),
  )
  await shown.step('has no error of a script and breaks no rule of the page', () => {
    mustBe(troubles.length === 0, troubles.join('\n'))
    return ''
  })
}

function within(fromMs: number, limitSeconds: number): string {
  const seconds = (realClock.elapsed() - fromMs) / 1000
  mustBe(seconds <= limitSeconds, `it took ${seconds.toFixed(1)} s`)
  return `${seconds.toFixed(1)} s`
}

/** Returns the token of the command and the name of the cluster. */
async function importByCommand({ page, dialog, save }: Visitor, upstream: UpstreamCluster): Promise<[string, string]> {
  await page.getByRole('button', { name: 'Import a cluster …' }).click()
  await page.getByLabel('Name').fill('upstream')
  await dialog('Import a cluster').getByRole('button', { name: 'Create' }).click()
  const command = (await page.getByRole('region', { name: 'Command' }).textContent()) ?? ''
  const own = join(folder, 'import')
  await mkdir(own)
  const download = await save(page.getByRole('button', { name: 'Save hyperkube-ca.crt' }))
  await download.saveAs(join(own, download.suggestedFilename()))
  await upstream.shell(command, own)
  await page.getByRole('button', { name: 'Done' }).click()
  const [, token = '', id = ''] = /import\/([\w-]+)_([a-z0-9-]+)\.yaml/.exec(command) ?? []
  mustBe(id !== '', command)
  return [token, id]
}

interface Both {
  readonly id: string
  readonly other: string
}

async function showBoth({ page, open }: Visitor, upstream: UpstreamCluster, { id, other }: Both): Promise<string> {
  const link = page.getByRole('link', { name: 'only-upstream' })
  const own = page.getByRole('link', { name: 'kubernetes', exact: true })
  await open(`/c/${id}/core/v1/configmaps?ns=${SHOP}`)
  await upstream.kubectl(['create', 'configmap', 'only-upstream', '-n', SHOP])
  await link.waitFor()
  await open(`/c/${other}/core/v1/services?ns=default`)
  await own.waitFor()
  await open(`/c/${other}/core/v1/configmaps`)
  await page.locator('.state-live').waitFor()
  mustBe((await link.count()) === 0, 'the page of one cluster shows objects of the other')
  await open('/search?q=only-upstream')
  await link.waitFor()
  return ''
}

async function createByYaml({ page, open }: Visitor, id: string): Promise<string> {
  await open(`/c/${id}/create?ns=${SHOP}`)
  await page.getByRole('textbox', { name: 'YAML of the new objects' }).click()
  await page.keyboard.insertText(WEB_WITH_MISTAKE)
  const mistake = page.locator('.cm-lintRange-error', { hasText: 'replicass' })
  await mistake.waitFor()
  await mistake.dblclick()
  await page.keyboard.type('repl', { delay: 50 })
  await page.locator('.cm-tooltip-autocomplete li', { hasText: 'replicas' }).first().click()
  await mistake.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Check' }).click()
  await page.getByText('would be created').waitFor()
  await page.getByRole('button', { name: 'Apply' }).click()
  await page.getByText('is created').waitFor()
  await page.getByRole('status').getByRole('link', { name: 'Deployment web' }).click()
  await page.getByText('2/2 ready').waitFor()
  return ''
}

async function rollOut({ page, dialog }: Visitor, id: string): Promise<string> {
  mustBe(page.url().includes(`/c/${id}/apps/v1/deployments/${SHOP}/web`), page.url())
  await page.getByRole('button', { name: 'Scale' }).focus()
  await page.keyboard.press('Enter')
  await page.getByLabel('Replicas').waitFor()
  await page.keyboard.press('Control+a')
  await page.keyboard.type('4')
  await page.keyboard.press('Enter')
  await page.getByText('4/4 ready').waitFor()
  await editLine(page.getByRole('link', { name: 'YAML' }), 'image: shop:1', '2')
  await page.getByText(/\d\/4 updated/).waitFor()
  await page.getByRole('link', { name: 'Summary' }).click()
  await page.getByText('4/4 ready').waitFor()
  await page.getByRole('button', { name: 'Roll back' }).click()
  await dialog('Roll back').getByRole('button', { name: 'Roll back' }).click()
  await page.getByText('shop:1').first().waitFor()
  await page.getByText('4/4 ready').waitFor()
  return ''
}

/** Replaces the last letter of a line of the YAML and applies the change. */
async function editLine(tab: Locator, line: string, letter: string): Promise<void> {
  const page = tab.page()
  await tab.click()
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await page.locator('.cm-line', { hasText: line }).click()
  await page.keyboard.press('End')
  await page.keyboard.press('Backspace')
  await page.keyboard.type(letter)
  await page.getByRole('button', { name: 'Check and compare' }).click()
  await page.getByRole('button', { name: 'Apply', exact: true }).click()
  await page.getByRole('button', { name: 'Edit', exact: true }).waitFor()
}

async function editNode({ page, open, refusals }: Visitor, upstream: UpstreamCluster, id: string): Promise<string> {
  const before = refusals.length
  const writer = upstream.writeNodeStatus()
  try {
    await upstream.kubectl(['label', 'node', NODE, 'shelf=a'])
    await open(`/c/${id}/core/v1/nodes/_/${NODE}/yaml`)
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await page.locator('.cm-line', { hasText: 'shelf: a' }).click()
    await page.keyboard.press('End')
    await page.keyboard.insertText('\n    row: b')
    await afterWrites(writer.writes, 3)
    await page.getByRole('button', { name: 'Check and compare' }).click()
    await page.getByRole('button', { name: 'Apply', exact: true }).waitFor()
    await afterWrites(writer.writes, 3)
    await page.getByRole('button', { name: 'Apply', exact: true }).click()
    await page.getByRole('button', { name: 'Edit', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Labels' }).click()
    const labels = page.getByRole('textbox', { name: 'Labels, a line each' })
    await labels.fill(`${await labels.inputValue()}\nroom=c`)
    await afterWrites(writer.writes, 3)
    await page.getByRole('button', { name: 'Set the labels' }).click()
    await page.getByText('The labels are set').waitFor()
  } finally {
    await writer.stop()
  }
  const found = await upstream.kubectl(['get', 'node', NODE, '-o', 'jsonpath={.metadata.labels}'])
  mustBe(/"room":"c"/.test(found) && /"row":"b"/.test(found), found)
  const conflicts = refusals.slice(before).filter((status) => status === 409).length
  mustBe(conflicts === 0, `${conflicts} answers were 409`)
  return `${writer.writes()} writes of the status`
}

async function afterWrites(writes: () => number, more: number): Promise<void> {
  const wanted = writes() + more
  while (writes() < wanted) await sleep(realClock, 50)
}

async function takeOver({ page, open }: Visitor, upstream: UpstreamCluster, id: string): Promise<string> {
  const object = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'owned', namespace: SHOP },
    data: { key: 'a' },
  }
  const apply = ['apply', '--server-side', '--field-manager=helm', '-f', '-']
  await upstream.kubectl(apply, JSON.stringify(object))
  await open(`/c/${id}/core/v1/configmaps/${SHOP}/owned/yaml`)
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await page.locator('.cm-line', { hasText: 'key: a' }).click()
  await page.keyboard.press('End')
  await page.keyboard.type('b')
  await page.getByRole('button', { name: 'Check and compare' }).click()
  await page.getByText('helm owns data.key').waitFor()
  await page.getByRole('button', { name: 'Take over and check again' }).click()
  await page.getByRole('button', { name: 'Apply', exact: true }).click()
  await page.getByRole('button', { name: 'Edit', exact: true }).waitFor()
  const words = await upstream.kubectl(apply, JSON.stringify(object)).then(
    () => 'no conflict',
    ({ stderr }: { readonly stderr: string }) => stderr,
  )
  mustBe(words.includes('conflict with "hyperkube-console"'), words)
  return ''
}

async function followKind({ page, open }: Visitor, upstream: UpstreamCluster, id: string): Promise<string> {
  const link = page.getByRole('navigation', { name: 'Kinds' }).getByRole('link', { name: 'Gadgets' })
  await open(`/c/${id}`)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await upstream.kubectl(['create', '-f', '-'], JSON.stringify(GADGETS))
  const createdMs = realClock.elapsed()
  await link.click()
  const appeared = within(createdMs, CONNECTED_SECONDS)
  await page.getByText('There are no gadgets').waitFor()
  const gadget = { apiVersion: 'example.com/v1', kind: 'Gadget', metadata: { name: 'one' }, spec: { size: 7 } }
  await upstream.kubectl(['create', '-n', SHOP, '-f', '-'], JSON.stringify(gadget))
  await page.getByRole('columnheader', { name: 'Size' }).waitFor()
  await page.getByRole('cell', { name: '7', exact: true }).waitFor()
  await upstream.kubectl(['delete', 'crd', GADGETS.metadata.name])
  const deletedMs = realClock.elapsed()
  await link.waitFor({ state: 'detached' })
  return `there after ${appeared}, gone after ${within(deletedMs, CONNECTED_SECONDS)}`
}

interface People {
  readonly admin: Visitor
  readonly jane: Visitor
}

async function addMember({ admin, jane }: People, upstream: UpstreamCluster, id: string): Promise<string> {
  const { page, dialog } = admin
  await admin.open(`/projects/${id}`)
  await page.getByRole('button', { name: 'Create a project' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Shop')
  await dialog('Create a project').getByRole('button', { name: 'Create' }).click()
  await page.getByRole('button', { name: `Move ${SHOP}` }).click()
  await page.getByRole('combobox', { name: 'To', exact: true }).selectOption('Shop')
  await dialog(`Move the namespace ${SHOP}`).getByRole('button', { name: 'Move' }).click()
  await page.getByRole('region', { name: 'Project Shop' }).getByRole('link', { name: SHOP }).waitFor()
  await admin.open(`/members/${id}`)
  await page.getByRole('button', { name: 'Add a member' }).click()
  await page.getByRole('combobox', { name: 'User', exact: true }).selectOption('jane')
  await page.getByRole('combobox', { name: 'In', exact: true }).selectOption('Project Shop')
  await page.getByRole('combobox', { name: 'Role', exact: true }).selectOption('Project Member')
  await dialog('Add a member').getByRole('button', { name: 'Give the role' }).click()
  await admin.row('jane').waitFor()
  await jane.open(`/c/${id}/core/v1/configmaps`)
  await jane.page.getByText('You may not list configmaps in this cluster').waitFor()
  await jane.page.getByRole('combobox', { name: 'Namespace' }).selectOption(SHOP)
  await jane.page.getByRole('link', { name: 'only-upstream' }).waitFor()
  await upstream.kubectl(['create', 'configmap', 'for-jane', '-n', SHOP])
  await jane.page.getByRole('link', { name: 'for-jane' }).waitFor()
  const offered = await jane.page.getByRole('combobox', { name: 'Namespace' }).locator('option').allTextContents()
  mustBe(!offered.includes('default') && !offered.includes('kube-system'), offered.join())
  for (const path of [`/core/v1/nodes`, `/core/v1/secrets?ns=kube-system`]) {
    await jane.open(`/c/${id}${path}`)
    await jane.page.getByText('You may not list').waitFor()
  }
  return offered.join(', ')
}

async function removeMember({ admin, jane }: People, id: string): Promise<string> {
  await jane.open(`/c/${id}/core/v1/configmaps?ns=${SHOP}`)
  await jane.page.getByRole('link', { name: 'for-jane' }).waitFor()
  await jane.page.locator('.state-live').waitFor()
  await admin.open(`/members/${id}`)
  await admin.row('jane').getByRole('button', { name: 'Remove' }).click()
  await admin.dialog('Remove jane').getByRole('button', { name: 'Remove' }).click()
  const fromMs = realClock.elapsed()
  await jane.page.getByRole('link', { name: 'for-jane' }).waitFor({ state: 'detached' })
  const gone = within(fromMs, REVOKED_SECONDS)
  await jane.open('/')
  await jane.page.getByText('You have no clusters').waitFor()
  return gone
}
