/** kubectl set resources: sets requests and limits of containers. */
import type { Container } from '#apis/core/v1.ts'
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { canonicalQuantity } from '#meta/quantity.ts'

import { type Command, defineCommand } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { dryRunOf, SELECTOR_FLAG, withDryRun } from '../flag-sets.ts'
import { printerOf } from '../printing.ts'
import { RECORD_FLAG } from '../recording.ts'
import { changeAll, containersOf, LOCAL_SERVER_RUN, selectObjects, podSpecOf, setFlags } from './changing.ts'

export const setResources: Command = defineCommand({
  name: 'resources',
  use: '(-f FILENAME | TYPE NAME)  ([--limits=LIMITS & --requests=REQUESTS] [options]',
  long: 'Set requests and limits of containers. Limits without requests also set the requests.',
  examples: `# Set limits of one container
kubectl set resources deployment nginx -c=nginx --limits=cpu=200m,memory=512Mi

# Remove requests and limits
kubectl set resources deployment nginx --limits=cpu=0,memory=0 --requests=cpu=0,memory=0`,
  flags: {
    ...setFlags(),
    ...RECORD_FLAG,
    ...SELECTOR_FLAG,
    containers: flag(string, '*', 'Names of the containers to change; * matches any text.', { shorthand: 'c' }),
    limits: flag(string, '', "Limits of the containers: 'cpu=100m,memory=256Mi'."),
    requests: flag(string, '', "Requests of the containers: 'cpu=100m,memory=256Mi'."),
  },
  async run(invocation) {
    const { args, flags } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    const operation = 'resource requirements updated'
    await printerOf(invocation, { operation: withDryRun(operation, dryRun) })
    const infos = await selectObjects(invocation, args, { selector: flags.selector })
    if (flags.local && dryRun === 'server') throw new KubectlError(LOCAL_SERVER_RUN)
    if (flags.all && flags.selector !== '') {
      throw new KubectlError('cannot set --all and --selector at the same time')
    }
    if (flags.limits === '' && flags.requests === '') {
      throw new KubectlError('you must specify an update to requests or limits (in the form of --requests/--limits)')
    }
    const wanted = { limits: amountsOf(flags.limits), requests: amountsOf(flags.requests) }
    const errors: Error[] = []
    await changeAll(invocation, infos, {
      dryRun,
      operation,
      failure: 'failed to patch resources update to pod template ',
      errors,
      change(object) {
        const containers = containersOf(podSpecOf(object), flags.containers)
        if (containers.length === 0) {
          errors.push(new KubectlError(`error: unable to find container named ${flags.containers}`))
          return false
        }
        for (const container of containers) {
          for (const field of ['limits', 'requests'] as const) {
            if (flags[field] === '') continue
            const had: Partial<Container['resources']> | undefined = container.resources
            container.resources = { ...had, [field]: { ...had?.[field], ...wanted[field] } }
          }
        }
        return true
      },
    })
  },
})

/** Throws KubectlError. */
function amountsOf(text: string): Record<string, string> {
  if (text === '') return {}
  const pairs = text.split(',').map((pair) => {
    const [name = '', amount, ...rest] = pair.split('=')
    if (amount === undefined || rest.length > 0) {
      throw new KubectlError(`Invalid argument syntax ${pair}, expected <resource>=<value>`)
    }
    return [name, canonicalQuantity(amount)] as const
  })
  return Object.fromEntries(pairs)
}
