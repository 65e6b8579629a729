// What NiceGUI mounts; everything else is imported from beside it.
import App from "ronid-studio/app.js";

export default App;
