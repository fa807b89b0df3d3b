/**
 * Takes pictures of every page of both consoles: `node test/integration/console/pictures/main.ts FOLDER [NAME…]`. Each
 * page is taken in both themes, 1280 and 390 pixels wide. With names, only the pages whose names contain one of them.
 */
import { ensureConsolePage } from '../../../../scripts/console-bundle.ts'
import { createCamera, type Take } from './camera.ts'
import { takeOneCluster } from './one-cluster.ts'
import { takeServer } from './server.ts'

const [folder, ...names] = process.argv.slice(2)
if (folder === undefined) throw new Error('Give the folder for the pictures')
await ensureConsolePage()
const shoot = createCamera(folder)
const isWanted = (name: string): boolean => names.length === 0 || names.some((part) => name.includes(part))
/** Shows the page, waits until it is complete, and takes it. A page that fails does not end the others. */
const take: Take = async (name, page, show) => {
  if (!isWanted(name)) return
  try {
    await show()
    await shoot(page, name)
  } catch (error) {
    process.stdout.write(`FAILED ${name}: ${(error as Error).message}\n`)
    process.exitCode = 1
    await shoot(page, `failed-${name}`)
  }
}
await takeOneCluster(take)
await takeServer(take)
