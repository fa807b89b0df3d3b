/** What pods verify the API server with: `--root-ca-file`, or what this program verifies it with. */
import { type ControllerContext, perRun } from './controller.ts'

/** Read once: who changes the file starts the manager again, as with upstream's. */
export const rootBundleOf: (context: ControllerContext) => Promise<string> = perRun(
  ({ settings, readFile, serverBundle }) => {
    const file = settings['root-ca-file']
    return file === '' ? Promise.resolve(serverBundle) : readFile(file)
  },
)
