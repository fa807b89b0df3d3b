/** Commands that are but a shelf of others: alone they show their help and fail, with a word too many they say so. */
import { type Invocation, usageError } from './command.ts'

/** What such a command runs. */
export async function requireSubcommand(invocation: Invocation): Promise<number> {
  const { args, help, stderr } = invocation
  if (args.length > 0) throw usageError(invocation, `unknown command "${args.join(' ')}"`)
  stderr.write(await help())
  return 1
}
