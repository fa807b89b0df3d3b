/** kubectl auth whoami: shows the user attributes that the server sees. */
import type { JsonObject } from '#lib/json/value.ts'
import { isForbidden, isNotFound } from '#meta/status.ts'

import { type Command, defineCommand } from '../command.ts'
import { listText } from '../describe/sections.ts'
import { KubectlError } from '../errors.ts'
import { TabWriter } from '../print/tabs.ts'
import { printerOf, printFlags } from '../printing.ts'
import type { Rest } from '../session/rest.ts'
import { postJson } from './reviews.ts'

interface SelfReview {
  readonly status: {
    readonly userInfo: {
      readonly username?: string
      readonly uid?: string
      readonly groups?: readonly string[]
      readonly extra?: Readonly<Record<string, readonly string[]>>
    }
  }
}

export const authWhoami: Command = defineCommand({
  name: 'whoami',
  use: '[options]',
  long: 'Show the attributes of the current user as the server sees them: name, UID, groups and extra fields.',
  examples:
    '# Show the attributes of the current user\nkubectl auth whoami\n\n# Show them as JSON\nkubectl auth whoami -o json',
  flags: { ...printFlags() },
  async run(invocation) {
    const { flags, session, stdout } = invocation
    const isTable = flags.output === '' && flags.template === ''
    const printer = isTable ? undefined : await printerOf(invocation, { keepOrder: true })
    const review = await reviewSelf(await session.rest())
    if (printer !== undefined) printer.print(review as unknown as JsonObject, stdout)
    else stdout.write(tableOf(review))
  },
})

/** Older servers have only alpha or beta versions. */
async function reviewSelf(rest: Rest): Promise<SelfReview> {
  let missing: unknown
  for (const version of ['v1', 'v1beta1', 'v1alpha1']) {
    const apiVersion = `authentication.k8s.io/${version}`
    const body = { kind: 'SelfSubjectReview', apiVersion }
    try {
      return await postJson<SelfReview>(rest, `/apis/${apiVersion}/selfsubjectreviews`, body)
    } catch (error) {
      if (isForbidden(error)) {
        throw new KubectlError(
          'the selfsubjectreviews API is not enabled in the cluster or you do not have permission to call it',
          { cause: error },
        )
      }
      if (!isNotFound(error)) throw error
      missing = error
    }
  }
  throw new KubectlError('the selfsubjectreviews API is not enabled in the cluster', { cause: missing })
}

function tableOf({ status }: SelfReview): string {
  const { username = '', uid = '', groups = [], extra = {} } = status.userInfo
  const rows = [
    ['Username', username],
    ['UID', uid],
    ['Groups', groups.length === 0 ? '' : listText(groups)],
    ...Object.keys(extra)
      .sort()
      .map((key) => [`Extra: ${key}`, listText(extra[key])]),
  ]
  const tabs = new TabWriter()
  tabs.write('ATTRIBUTE\tVALUE\n')
  for (const [label, value] of rows) if (value !== '') tabs.write(`${label}\t${value}\n`)
  return tabs.flush()
}
