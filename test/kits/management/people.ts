/**
 * Creates users, tokens and log-in for tests, on an in-memory API server, with cheap password hashes and one
 * administrator role.
 */
import { Members, Roles } from '#management/kinds/access.ts'
import type { User } from '#management/kinds/user.ts'
import type { ManagementObjects } from '#management/objects.ts'
import type { CreateClient } from '#management/people/oidc/providers.ts'
import { createPeople, type People } from '#management/people/people.ts'

import { TEST_HOST } from './exchange.ts'
import { startObjects, type TestObjects } from './objects.ts'

export const ADMINISTRATOR = 'administrator'

export interface TestPeople extends TestObjects, AsyncDisposable {
  readonly people: People
  /** Of the first administrator, who must change it. */
  readonly firstPassword: string
}

/** Members decide who is administrator. */
export function isAdministratorIn(objects: ManagementObjects): (user: User) => boolean {
  return ({ metadata }) =>
    objects.list(Members).some(({ spec }) => spec.role === ADMINISTRATOR && spec.user === metadata.name)
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

export async function startPeople(createProviderClient?: CreateClient): Promise<TestPeople> {
  const started = await startObjects()
  const { objects } = started
  await addRoles(objects)
  const people = createPeople({
    objects,
    isAdministrator: isAdministratorIn(objects),
    administratorRole: ADMINISTRATOR,
    serverUrl: () => `https://${TEST_HOST}`,
    passwordHash: { cost: { memoryKiB: 8, passes: 1, parallelism: 1 } },
    ...(createProviderClient !== undefined && { createProviderClient }),
  })
  const first = await people.ensureFirstAdministrator()
  const stop = async (): Promise<void> => {
    await people.close()
    started[Symbol.dispose]()
  }
  return { ...started, people, firstPassword: first?.password ?? '', [Symbol.asyncDispose]: stop }
}
