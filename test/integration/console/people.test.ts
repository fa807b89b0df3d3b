/** Tests the pages about people and rights in a real browser, as administrator and as a user without rights. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import type { Locator, Page } from 'playwright-core'

import { AuthProviders } from '#management/kinds/auth-provider.ts'

import { PASSWORD } from '../management/bed.ts'
import { whyNoBrowser } from './browser-bed.ts'
import { addCluster, type ManagedCluster, openUserPage, type UserPage } from './people-bed.ts'
import { type ServerBed, startServerBed } from './server-bed.ts'

const MARKUP = '<img src=x onerror="alert(1)">'
const OTHER_PASSWORD = 'another horse, another battery'

describe('people and rights in the console', { skip: whyNoBrowser }, () => {
  let bed: ServerBed
  let admin: UserPage
  let jane: UserPage
  let janeId = ''
  let managed: ManagedCluster
  let cluster = ''
  before(async () => {
    bed = await startServerBed()
    ;({ name: janeId } = await bed.server.createUser('jane'))
    managed = await addCluster(bed.server, 'prod')
    cluster = managed.id
    admin = await openUserPage(bed, 'admin')
    jane = await openUserPage(bed, 'jane')
  })
  after(async () => {
    await managed?.[Symbol.asyncDispose]()
    await bed?.[Symbol.asyncDispose]()
  })

  const row = (page: Page, text: string): Locator => page.getByRole('row').filter({ hasText: text })
  const choice = (page: Page, name: string): Locator => page.getByRole('combobox', { name, exact: true })
  const dialog = (page: Page, name: string): Locator => page.getByRole('dialog', { name })
  async function checkThemes(user: UserPage): Promise<void> {
    assert.deepEqual(await user.violations(), [])
  }

  it('creates, disables and deletes a user', async () => {
    const { page } = admin
    await admin.open('/')
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByRole('button', { name: 'Create a user' }).click()
    await page.getByLabel('Username').fill('bob')
    await page.getByLabel('Name (optional)').fill(MARKUP)
    await page.getByLabel('Password (optional)').fill('short')
    await dialog(page, 'Create a user').getByRole('button', { name: 'Create' }).click()
    await page.getByRole('alert').waitFor()
    await checkThemes(admin)
    await page.getByLabel('Password (optional)').fill(PASSWORD)
    await dialog(page, 'Create a user').getByRole('button', { name: 'Create' }).click()
    await row(page, 'bob').getByText('Must change the password').waitFor()
    await row(page, 'bob').getByText(MARKUP).waitFor()
    await checkThemes(admin)
    await page.getByRole('link', { name: 'bob' }).click()
    await page.getByRole('button', { name: 'Disable' }).click()
    await dialog(page, 'Disable bob').getByRole('button', { name: 'Disable' }).click()
    await page.getByText('Disabled', { exact: true }).waitFor()
    await checkThemes(admin)
    await page.getByRole('button', { name: 'Delete' }).click()
    await dialog(page, 'Delete bob').getByRole('button', { name: 'Delete' }).click()
    await row(page, 'jane').waitFor()
    await row(page, 'bob').waitFor({ state: 'detached' })
  })

  it('gives a user a global role and takes it away', async () => {
    const { page } = admin
    await admin.open(`/users/${janeId}`)
    await page.getByRole('button', { name: 'Give a role' }).click()
    await choice(page, 'Role').selectOption('View Metrics')
    await page.getByRole('button', { name: 'Give the role' }).click()
    await row(page, 'View Metrics').getByText('this server').waitFor()
    await row(page, 'View Metrics').getByRole('button', { name: 'Remove' }).click()
    await dialog(page, 'Remove the role View Metrics').getByRole('button', { name: 'Remove' }).click()
    await row(page, 'View Metrics').waitFor({ state: 'detached' })
  })

  it('creates and changes a role, and says in words which rights are missing', async () => {
    const { page } = admin
    await admin.open('/roles')
    await checkThemes(admin)
    await page.getByRole('button', { name: 'Create a role' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Secret readers')
    await page.getByLabel('Verbs').fill('get, list')
    await page.getByLabel('Resources').fill('secrets')
    await checkThemes(admin)
    await dialog(page, 'Create a role').getByRole('button', { name: 'Create' }).click()
    await page.getByRole('link', { name: 'Secret readers' }).click()
    await row(page, 'get, list').getByText('core').waitFor()
    await checkThemes(admin)
    await page.getByRole('button', { name: 'Change' }).click()
    await page.getByLabel('Resources').fill('secrets, configmaps')
    await page.getByRole('button', { name: 'Save' }).click()
    await row(page, 'secrets, configmaps').waitFor()
    const body = { role: 'roles-manage', user: janeId }
    await bed.server.request('POST', '/v3/members', { token: bed.server.administrator, body })
    await jane.open('/roles')
    await jane.page.getByRole('link', { name: 'Secret readers' }).click()
    await jane.page.getByRole('button', { name: 'Change' }).click()
    await jane.page.getByLabel('Verbs').fill('get')
    await jane.page.getByRole('button', { name: 'Save' }).click()
    await jane.page.getByRole('alert').getByText('– get configmaps').waitFor()
  })

  it('adds a member of a project, who sees only that project', async () => {
    const { page } = admin
    await admin.open('/members')
    await checkThemes(admin)
    await choice(page, 'Cluster').selectOption('prod')
    await page.getByRole('button', { name: 'Add a member' }).click()
    await choice(page, 'User').selectOption('jane')
    await choice(page, 'In').selectOption('Project Default')
    await choice(page, 'Role').selectOption('Project Owner')
    await checkThemes(admin)
    await page.getByRole('button', { name: 'Give the role' }).click()
    await row(page, 'jane').getByText('the project Default').waitFor()
    await checkThemes(admin)
    await jane.open(`/projects/${cluster}`)
    await jane.page.getByRole('heading', { name: 'Default' }).waitFor()
    assert.equal(await jane.page.getByRole('heading', { name: 'System' }).count(), 0)
    assert.equal(await jane.page.getByRole('button', { name: 'Create a project' }).count(), 0)
    await jane.page.getByRole('button', { name: 'Create a namespace' }).click()
    await jane.page.getByLabel('Name of the namespace').fill('shop')
    await dialog(jane.page, 'Create a namespace in Default').getByRole('button', { name: 'Create' }).click()
    await jane.page.getByRole('link', { name: 'shop' }).waitFor()
    await checkThemes(jane)
    await jane.open(`/members/${cluster}`)
    await row(jane.page, 'jane (you)').getByRole('button', { name: 'Remove' }).waitFor()
  })

  it('groups namespaces by project for members who may not list them', async () => {
    const { page } = jane
    await jane.open(`/c/${cluster}/core/v1/configmaps`)
    const namespaces = page.getByRole('combobox', { name: 'Namespace' })
    await page.getByText('You may not list configmaps in this cluster').waitFor()
    await namespaces
      .locator('optgroup[label="Project Default"] option', { hasText: 'shop' })
      .waitFor({ state: 'attached' })
    await namespaces.selectOption('shop')
    await page.getByRole('link', { name: 'kube-root-ca.crt' }).waitFor()
    await checkThemes(jane)
  })

  it('adds and removes a group of a provider', async () => {
    const { page } = admin
    const spec = { type: 'oidc', displayName: 'Corp', issuer: 'https://idp.example', clientID: 'hk' } as const
    await bed.server.running.objects.create(AuthProviders, { metadata: { name: 'corp' }, spec })
    await admin.open(`/members/${cluster}`)
    await page.getByRole('button', { name: 'Add a member' }).click()
    await choice(page, 'To').selectOption('A group of an identity provider')
    await choice(page, 'Provider').selectOption('Corp')
    await page.getByLabel('Group', { exact: true }).fill('devs')
    await choice(page, 'Role').selectOption('Cluster Read-Only')
    await checkThemes(admin)
    await page.getByRole('button', { name: 'Give the role' }).click()
    const added = row(page, 'Group corp:devs')
    await added.getByText('the whole cluster').waitFor()
    await added.getByRole('button', { name: 'Remove' }).click()
    await dialog(page, 'Remove the group corp:devs').getByRole('button', { name: 'Remove' }).click()
    await added.waitFor({ state: 'detached' })
  })

  it('creates a project and moves a namespace into it', async () => {
    const { page } = admin
    await admin.open(`/projects/${cluster}`)
    await page.getByRole('button', { name: 'Create a project' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Shop')
    await dialog(page, 'Create a project').getByRole('button', { name: 'Create' }).click()
    await page.getByRole('button', { name: 'Move shop' }).click()
    await choice(page, 'To').selectOption('Shop')
    await checkThemes(admin)
    await dialog(page, 'Move the namespace shop').getByRole('button', { name: 'Move' }).click()
    await page.getByRole('region', { name: 'Project Shop' }).getByRole('link', { name: 'shop' }).waitFor()
    await page.getByRole('region', { name: 'Project Shop' }).getByRole('button', { name: 'Move shop' }).waitFor()
    await checkThemes(admin)
  })

  it('shows a new API token once, and deletes it', async () => {
    const { page } = jane
    await jane.open('/tokens')
    await page.getByRole('button', { name: 'Create a token' }).click()
    await page.getByLabel('Description (optional)').fill('CI')
    await page.getByLabel('Ends after').fill('100')
    await dialog(page, 'Create an API token').getByRole('button', { name: 'Create' }).click()
    await page.getByRole('alert').getByText('from 1 to 90').waitFor()
    await page.getByLabel('Ends after').fill('2')
    await page.getByLabel('May only read').check()
    await dialog(page, 'Create an API token').getByRole('button', { name: 'Create' }).click()
    const token = (await page.locator('.command').textContent()) ?? ''
    assert.match(token, /^hk_t-/)
    await checkThemes(jane)
    assert.equal((await bed.server.request('GET', '/v3/me', { token })).status, 200)
    await page.getByRole('button', { name: 'Done' }).click()
    await row(page, 'CI').getByText('only read').waitFor()
    await page.getByRole('button', { name: 'Delete CI' }).click()
    await dialog(page, 'Delete the token CI').getByRole('button', { name: 'Delete' }).click()
    await row(page, 'CI').waitFor({ state: 'detached' })
    assert.equal((await bed.server.request('GET', '/v3/me', { token })).status, 401)
    assert.ok(!(await page.content()).includes(token))
  })

  it('shows the facts about the server', async () => {
    await jane.open('/settings')
    await row(jane.page, 'Passwords of this server').waitFor()
    const [download] = await Promise.all([
      jane.page.waitForEvent('download'),
      jane.page.getByRole('link', { name: 'Download hyperkube-ca.crt' }).click(),
    ])
    assert.equal(download.suggestedFilename(), 'hyperkube-ca.crt')
    await checkThemes(jane)
  })

  it('changes the password and logs out everywhere', async () => {
    const { page } = jane
    await jane.open('/')
    await page.getByTitle('Your account').click()
    await page.getByLabel('Current password').fill(PASSWORD)
    await page.getByLabel('New password', { exact: true }).fill(OTHER_PASSWORD)
    await page.getByLabel('New password again').fill(OTHER_PASSWORD)
    await page.getByRole('button', { name: 'Change the password' }).click()
    await page.getByText('The password was changed').waitFor()
    await checkThemes(jane)
    await page.getByRole('button', { name: 'Log out everywhere' }).click()
    await dialog(page, 'Log out everywhere').getByRole('button', { name: 'Log out' }).click()
    await page.getByLabel('Username').waitFor()
  })

  it('shows users without rights clear words and no data', async () => {
    await bed.server.createUser('ann')
    const ann = await openUserPage(bed, 'ann')
    const { page } = ann
    assert.equal(await page.getByRole('link', { name: 'Users' }).count(), 0)
    await ann.open('/users')
    await page.getByText('You may not see the users').waitFor()
    await page.getByText('Users need the global role users-manage').waitFor()
    await ann.open('/members')
    await page.getByRole('heading', { name: 'Choose a cluster' }).waitFor()
    await ann.open(`/members/${cluster}`)
    await page.getByText('The members of this cluster cannot be loaded').waitFor()
    await ann.open(`/projects/${cluster}`)
    await page.getByText('The projects of this cluster cannot be loaded').waitFor()
    await checkThemes(ann)
    await ann.open('/roles')
    await page.getByRole('heading', { name: 'Roles for a cluster' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Create a role' }).count(), 0)
    const seen = (await ann.bodies()).join('\n')
    for (const secret of [janeId, 'jane', 'Shop', 'prod']) assert.ok(!seen.includes(secret), secret)
    assert.ok(seen.includes('users-manage'))
  })

  it('offers managers of users what they may do, and says what they may not', async () => {
    const { name } = await bed.server.createUser('mia')
    const body = { role: 'users-manage', user: name }
    await bed.server.request('POST', '/v3/members', { token: bed.server.administrator, body })
    const mia = await openUserPage(bed, 'mia')
    const { page } = mia
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByRole('link', { name: 'jane' }).click()
    await row(page, 'Manage Roles').getByText('this server').waitFor()
    await mia.open('/users')
    await page.getByRole('link', { name: 'admin', exact: true }).click()
    await row(page, 'Administrator').waitFor()
    await page.getByRole('button', { name: 'Set a password' }).click()
    await page.getByLabel('Password', { exact: true }).fill(OTHER_PASSWORD)
    await page.getByRole('button', { name: 'Set the password' }).click()
    await page.getByRole('alert').getByText('Only administrators may change administrators').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Give a role' }).click()
    await choice(page, 'Role').selectOption('Administrator')
    await page.getByRole('button', { name: 'Give the role' }).click()
    await page.getByRole('alert').getByText('every verb on everything').first().waitFor()
    await checkThemes(mia)
  })

  it('runs no markup and breaks no rule of the page', () => assert.deepEqual(bed.troubles, []))
})
