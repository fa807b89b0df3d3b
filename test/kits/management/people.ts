/**
 * Creates users, tokens and log-in for tests, on an in-memory API server, with cheap password hashes and one
 * administrator role.
 */
import { Members, Roles } from '#management/kinds/access.ts'
import { Tokens } from '#management/kinds/token.ts'
import { type User, Users } from '#management/kinds/user.ts'
import type { ManagementObjects } from '#management/objects.ts'
import type { CreateClient } from '#management/people/oidc/providers.ts'
import { createPeople, type People, type PeopleOptions } from '#management/people/people.ts'

import { sendTo, TEST_HOST } from './exchange.ts'
import { startObjects, type TestObjects } from './objects.ts'

export const ADMINISTRATOR = 'administrator'

export interface TestPeople extends TestObjects, AsyncDisposable {
  readonly people: People
  /** Of the first administrator, who must change it, as all users with a password from an administrator. */
  readonly firstPassword: string
}

/** Members decide who is administrator. */
export function isAdministratorIn(objects: ManagementObjects): (user: User) => boolean {
  return ({ metadata }) =>
    objects.list(Members).some(({ spec }) => spec.role === ADMINISTRATOR && spec.user === metadata.name)
}

/** Administrators may do everything, others nothing. */
export function permissionsIn(objects: ManagementObjects): PeopleOptions['permissions'] {
  const isAdministrator = isAdministratorIn(objects)
  return { may: isAdministrator, coversUser: isAdministrator }
}

export async function addRoles(objects: ManagementObjects): Promise<void> {
  const rules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }]
  await objects.create(Roles, { metadata: { name: ADMINISTRATOR }, spec: { scope: 'global', rules } })
  await objects.create(Roles, {
    metadata: { name: 'user-base' },
    spec: { scope: 'global', rules: [], isDefault: true },
  })
  await objects.create(Roles, { metadata: { name: 'reader' }, spec: { scope: 'cluster', rules: [], isDefault: true } })
}

const FIRST_PASSWORD = 'a password for one day'

async function setFirstPassword(people: People, objects: ManagementObjects): Promise<void> {
  const first = await people.issueFirstLogin()
  const body = { code: first?.code, password: FIRST_PASSWORD }
  const answer = await sendTo(people, { method: 'POST', path: '/v3-public/first-login', body })
  const { name } = answer.body['user'] as { readonly name: string }
  await objects.change(Users, name, (user) => ({ ...user, spec: { ...user.spec, mustChangePassword: true } }))
  const [session] = objects.list(Tokens)
  await objects.delete(Tokens, session?.metadata.name ?? '')
}

export async function startPeople(createProviderClient?: CreateClient): Promise<TestPeople> {
  const started = await startObjects()
  const { objects } = started
  await addRoles(objects)
  const people = createPeople({
    objects,
    isAdministrator: isAdministratorIn(objects),
    permissions: permissionsIn(objects),
    administratorRole: ADMINISTRATOR,
    serverUrl: () => `https://${TEST_HOST}`,
    passwordHash: { cost: { memoryKiB: 8, passes: 1, parallelism: 1 } },
    ...(createProviderClient !== undefined && { createProviderClient }),
  })
  await setFirstPassword(people, objects)
  const stop = async (): Promise<void> => {
    await people.close()
    started[Symbol.dispose]()
  }
  return { ...started, people, firstPassword: FIRST_PASSWORD, [Symbol.asyncDispose]: stop }
}
